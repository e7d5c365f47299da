// The tests in the newest Node, which has its own navigator.locks.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { amount } from '../support/soak.js';

const file = (path) => fileURLToPath(new URL(path, import.meta.url));
const newest = file('../../peers/node_modules/.bin/node');
const skip = existsSync(newest) ? false : 'the newest Node is not installed: run npm install --prefix peers';

/** Here these tests are repeated, so they kill few threads. */
const rounds = amount('NAVLOCKS_ROUNDS', 20, 2000);

async function run(...given) {
  // The child is not part of this test run: it reports by its output.
  const { NODE_TEST_CONTEXT, ...own } = process.env;
  const env = { ...own, NAVLOCKS_ROUNDS: rounds };
  const { stdout } = await promisify(execFile)(newest, given, { env, timeout: 1_200_000, maxBuffer: 2 ** 26 }).catch((error) => {
    throw new Error(`${error.message}\n${error.stdout}`);
  });
  return stdout;
}

for (const provider of ['navlocks', 'installed']) {
  test(`the standard's cases pass in the newest Node, on ${provider}`, { skip }, async () => {
    const results = (await run(file('../support/conformance-runner.js'), provider)).trim().split('\n').map((line) => JSON.parse(line));
    assert.deepEqual(results.filter(({ passed }) => !passed), []);
    assert.ok(results.length > 100, `only ${results.length} cases`);
  });
}

for (const name of ['extensions', 'lineage', 'threads', 'process']) {
  test(`${name}.test.js passes in the newest Node`, { skip }, async () => {
    await run('--test', file(`../process/${name}.test.js`));
  });
}

test('await using releases a handle at the end of its block, also after a throw', { skip }, async () => {
  assert.equal(await run('--input-type=module', '--eval', `
    import { locks } from ${JSON.stringify(import.meta.resolve('navlocks'))};
    async function careless() {
      await using lock = await locks.hold('a');
      console.log(lock.held, (await locks.query()).held.length);
      throw new Error('thrown');
    }
    await careless().catch((error) => console.log(error.message));
    console.log((await locks.query()).held.length);
  `), 'true 1\nthrown\n0\n');
});
