// The examples of both READMEs print the output in their comments, after an arrow.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { command, scratch } from '../support/service.js';

const file = (path) => fileURLToPath(new URL(path, import.meta.url));
const newest = file('../../peers/node_modules/.bin/node');

const examplesOf = (readme) => [...readFileSync(file(readme), 'utf8').matchAll(/^```js\n([^]*?)^```$/gm)].map(([, code]) => code);
const examples = [...examplesOf('../../README.md'), ...examplesOf('../../../README.md')];

test('there are twelve examples', () => assert.equal(examples.length, 12));

// The folder of the service that an example starts.
const env = { ...process.env, NAVLOCKS_DIR: join(scratch(), 'own'), NAVLOCKS_BIN: command };

for (const [index, code] of examples.entries()) {
  // Older versions of Node do not parse `await using`.
  const node = code.includes('await using') ? newest : process.execPath;
  const skip = existsSync(node) ? false : 'the newest Node is not installed: run npm install --prefix peers';
  test(`example ${index + 1} prints its documented output`, { skip }, async () => {
    // Within the package, so that `navlocks` resolves to it.
    const folder = await mkdtemp(file('./readme-'));
    try {
      await writeFile(join(folder, 'example.mjs'), code);
      const { stdout } = await promisify(execFile)(node, [join(folder, 'example.mjs')], { env, timeout: 300_000 });
      const expected = [...code.matchAll(/\/\/ → (.*)/g)].map(([, line]) => `${line}\n`);
      assert.ok(expected.length > 0);
      assert.equal(stdout, expected.join(''));
    } finally {
      await rm(folder, { recursive: true });
    }
  });
}

test.after(() => promisify(execFile)(command, ['stop', '--force'], { env }));
