// The types are checked by tsc.

import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));

async function check(folder) {
  const project = fileURLToPath(new URL(folder, import.meta.url));
  await promisify(execFile)(process.execPath, [tsc, '--project', project]).catch(({ stdout, message }) => {
    throw new Error(stdout || message);
  });
}

test('the types say what a program may write', () => check('./types'));

test('the types need no more of a project than es2022 and dom, library check included', () => check('./types/dom'));
