// tsc checks the types.

import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const tsc = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url));

async function check(folder) {
  const project = fileURLToPath(new URL(folder, import.meta.url));
  await promisify(execFile)(process.execPath, [tsc, '--project', project]).catch(({ stdout, message }) => {
    throw new Error(stdout || message);
  });
}

test('tsc accepts correct programs and rejects wrong ones', () => check('../types'));

test('the types need only the libraries es2022 and dom, with library checks', () => check('../types/dom'));
