// The package and its process: when it stays alive, how it ends, and the memory that names leave.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { amount } from '../support/soak.js';

async function run(program, { flags = [], given = [] } = {}) {
  const file = fileURLToPath(new URL(`../programs/${program}`, import.meta.url));
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [...flags, file, ...given], { timeout: 600_000 });
  assert.equal(stderr, '');
  return stdout.trim();
}

test('S17 a pending request keeps the process alive', async () => {
  assert.equal(await run('pending.js'), 'granted');
});

test('S17 decision 8: a held lock and an aborted request do not keep the process alive', async () => {
  assert.equal(await run('idle.js'), 'aborted\nend');
});

test('require() loads the package', async () => {
  assert.equal(await run('common.cjs'), 'true');
});

// The engine in WebAssembly needs the main thread, see engines.test.js.
const isWasm = process.env.NAVLOCKS_ENGINE === 'wasm';

test('fencing tokens keep growing after all workers that loaded the package have ended', async () => {
  if (isWasm) return;
  assert.equal(await run('workers-only.js'), '1,2,3');
});

test('F124 a process can exit at any moment', async () => {
  for (let count = 0; count < 5; count++) assert.equal(await run('exit.js'), 'exit');
});

// The least memory of a leaked name: a table entry in the heap, its text outside.
const LEFT_BEHIND = { heapUsed: 8, rss: 100 };

test('G18 F69 released names leave no memory behind', async (t) => {
  const [rounds, apart] = [10, 3];
  const names = amount('NAVLOCKS_NAMES', 100_000, 1_000_000) / rounds;
  // Fixed, because V8 chooses the size of its nursery by the machine.
  const flags = ['--expose-gc', '--min-semi-space-size=1', '--max-semi-space-size=1'];
  const figures = JSON.parse(await run('memory.js', { flags, given: [`${rounds}`, `${names}`] }));
  for (const [what, bytes] of Object.entries(LEFT_BEHIND)) {
    const values = figures.map((figure) => figure[what]);
    t.diagnostic(`${what} in rounds of ${names} names: ${values.join(' ')}`);
    // An allocator may grow at any moment. A leak grows between all rounds.
    const least = Math.min(...values.slice(apart).map((value, round) => value - values[round]));
    const limit = (apart * names * bytes) / 4;
    assert.ok(least < limit, `${what} grew by at least ${least} bytes in any ${apart} rounds of ${names} names`);
  }
  for (const [round, { kept, requests, bytes, mail }] of figures.entries()) {
    assert.deepEqual({ kept, requests, mail }, { kept: 0, requests: 0, mail: 0 }, `after round ${round}`);
    // Places of requests are reused: their number is that of concurrent requests.
    assert.ok(bytes <= 2 ** 20, `${bytes} bytes after round ${round}`);
  }
});
