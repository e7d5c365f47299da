// The public tests that need no browser, in Node: each in a process of its own, since some never let go of their locks.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { programs } from './checkout.js';
import { subtestsOf } from './results.js';

const program = fileURLToPath(new URL('./program.js', import.meta.url));

/** A test that has no end by then has failed. */
const LIMIT_MS = 120_000;

/**
 * @param node    the program to run
 * @param locks   whose locks, see program.js
 * @param thread  whether to try them in a thread that is not the main one
 * @yields { test, name, passed, message } for every subtest
 */
export async function* runInNode({ node, locks, thread = false, wanted }) {
  for (const test of programs().filter(wanted)) {
    const given = [program, await locks(), test, ...(thread ? ['thread'] : [])];
    let found;
    try {
      const { stdout } = await promisify(execFile)(node, given, { timeout: LIMIT_MS, killSignal: 'SIGKILL', maxBuffer: 2 ** 26 });
      found = JSON.parse(stdout);
    } catch (error) {
      found = { status: undefined, message: error.killed ? 'it does not end' : String(error.stderr || error), subtests: [] };
    }
    for (const subtest of subtestsOf(found)) yield { test, ...subtest };
  }
}
