// The types are checked by tsc.

import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

test('the types say what a program may write', async () => {
  const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));
  const project = fileURLToPath(new URL('./types', import.meta.url));
  await promisify(execFile)(process.execPath, [tsc, '--project', project]).catch(({ stdout, message }) => {
    throw new Error(stdout || message);
  });
});
