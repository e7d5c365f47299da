// What a process sees of the package: when it stays alive, how it ends, what it costs to have used it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

async function run(program, { flags = [], given = [] } = {}) {
  const file = fileURLToPath(new URL(`./programs/${program}`, import.meta.url));
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [...flags, file, ...given], { timeout: 600_000 });
  assert.equal(stderr, '');
  return stdout.trim();
}

test('S17 a pending request keeps the process alive', async () => {
  assert.equal(await run('pending.js'), 'granted');
});

test('S17 a held lock does not, nor a request that was aborted', async () => {
  assert.equal(await run('idle.js'), 'aborted\nend');
});

test('the package can be required', async () => {
  assert.equal(await run('common.cjs'), 'true');
});

test('fencing tokens go on when only workers loaded the package, and all of them ended', async () => {
  assert.equal(await run('workers-only.js'), '1,2,3');
});

test('F124 the process can end at any moment', async () => {
  for (let count = 0; count < 5; count++) assert.equal(await run('exit.js'), 'exit');
});

test('G18 F69 names that were used once leave no memory behind', async (t) => {
  const requests = Number(process.env.NAVLOCKS_NAMES ?? 200_000);
  const { before, after } = JSON.parse(await run('memory.js', { flags: ['--expose-gc'], given: [`${requests}`] }));
  t.diagnostic(JSON.stringify({ requests, before, after }));
  // A name left behind would take more than twenty bytes.
  assert.ok(after.heapUsed - before.heapUsed < requests * 5, 'the heap grew');
  assert.ok(after.rss - before.rss < 50_000_000, 'the process grew');
});
