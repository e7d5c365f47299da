// The public tests that need no browser, in Node. Each has a process, because some never release
// their locks.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { programs } from './checkout.js';
import { subtestsOf } from './results.js';

const program = fileURLToPath(new URL('./program.js', import.meta.url));

/** A test that runs longer has failed. */
const LIMIT_MS = 120_000;

/**
 * @param node    the path of Node
 * @param locks   returns the locks to test, see program.js
 * @param thread  whether to run them in a worker thread
 * @param engine  the engine of the package
 * @yields { test, name, passed, message } for every subtest
 */
export async function* runInNode({ node, locks, thread = false, engine = '', wanted }) {
  for (const test of programs().filter(wanted)) {
    // The engine in WebAssembly is in the main thread, also for a test in a worker.
    const given = [...(engine === 'wasm' ? ['--import', import.meta.resolve('navlocks')] : []), program, await locks(), test, ...(thread ? ['thread'] : [])];
    let found;
    try {
      const env = { ...process.env, NAVLOCKS_ENGINE: engine };
      const { stdout } = await promisify(execFile)(node, given, { env, timeout: LIMIT_MS, killSignal: 'SIGKILL', maxBuffer: 2 ** 26 });
      found = JSON.parse(stdout);
    } catch (error) {
      found = { status: undefined, message: error.killed ? 'it does not end' : String(error.stderr || error), subtests: [] };
    }
    for (const subtest of subtestsOf(found)) yield { test, ...subtest };
  }
}
