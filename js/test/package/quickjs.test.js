// Locks of workers that are threads of another engine: examples/quickjs.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { scratch } from '../support/service.js';
import { buildRuntime } from '../wpt/quickjs.js';

const example = fileURLToPath(new URL('../../../examples/quickjs', import.meta.url));
const run = (...given) => promisify(execFile)(join(example, 'run'), given);

describe('examples/quickjs', () => {
  before(async () => {
    assert.equal(await buildRuntime(), false);
  });

  test('the lock of a worker goes on when the worker is terminated, in a loop without end', async () => {
    const { stdout } = await run(join(example, 'scripts/terminate.js'));
    assert.equal(stdout, '1 held, 1 pending, by 2 clients\nthe next client holds the lock\n');
  });

  test('a script that throws ends the runtime with its error, and its locks end with it', async () => {
    const script = join(scratch(), 'throws.js');
    writeFileSync(script, "navigator.locks.request('a', () => new Promise(() => {}));\nthrow new TypeError('wrong');\n");
    await assert.rejects(run(script), ({ code, stderr }) => code === 1 && /wrong/.test(stderr));
    await assert.rejects(run('--unknown', script), ({ code, stderr }) => code === 2 && /^usage/.test(stderr));
  });

  test('a context without security has no locks', async () => {
    const script = join(scratch(), 'insecure.js');
    writeFileSync(script, "print('locks' in navigator, typeof LockManager);\n");
    assert.equal((await run('--insecure', script)).stdout, 'false undefined\n');
    assert.equal((await run(script)).stdout, 'true function\n');
  });
});
