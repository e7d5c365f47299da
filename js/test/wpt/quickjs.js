// The public tests in QuickJS, with navlocks as examples/quickjs embeds it. Each has a process.

import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { scratch } from '../support/service.js';
import { root, scripts, scriptsOf } from './checkout.js';
import { subtestsOf } from './results.js';

const run = fileURLToPath(new URL('../../../examples/quickjs/run', import.meta.url));

/** A test that runs longer has failed. */
const LIMIT_MS = 120_000;

/** The globals that the tests need and the runtime lacks. */
function setup(path, worker) {
  return `
    self.location = { pathname: ${JSON.stringify(path)}, href: ${JSON.stringify(`http://localhost${path}`)} };
    self.GLOBAL = { isWindow: () => ${!worker}, isWorker: () => ${worker}, isShadowRealm: () => false };
    ${worker ? '' : 'self.Window = class {};'}
    const Plain = Worker;
    self.Worker = class extends Plain {
      constructor(script) {
        super(${JSON.stringify(join(root, dirname(path), '/'))} + script);
      }
    };
    self.fetch = async (path) => ({ ok: true, text: async () => readFile(${JSON.stringify(root)} + path) });
  `;
}

/** Prints the results as JSON. The harness of IDL alone knows that the global is a worker's. */
const REPORT = `
  if (GLOBAL.isWorker()) self.DedicatedWorkerGlobalScope = { [Symbol.hasInstance]: (value) => value === self };
  add_completion_callback((tests, { status, message }) => {
    print(JSON.stringify({ status, message, subtests: tests.map(({ name, status, message }) => ({ name, status, message })) }));
    close();
  });
`;

/** The reason why the runtime cannot be built; false if it was. Building takes half a minute. */
export async function buildRuntime() {
  try {
    await promisify(execFile)(run, ['--build']);
    return false;
  } catch (error) {
    return error.code === 127 ? 'there is no cargo' : `it does not build: ${error.stderr}`;
  }
}

/**
 * @param worker  whether to run them in a worker
 * @yields { test, name, passed, message } for every subtest
 */
export async function* runInQuickJs({ worker, wanted }) {
  const folder = scratch();
  const write = (name, text) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const file = (path) => join(root, path === '/resources/WebIDLParser.js' ? '/resources/webidl2/lib/webidl2.js' : path);
  const report = write('report.js', REPORT);
  const done = write('done.js', 'done();');
  for (const test of scripts().filter(wanted)) {
    const files = [write('setup.js', setup(test, worker)), file('/resources/testharness.js'), report, ...[...scriptsOf(test), test].map(file), done];
    const flags = [...(test.includes('.https.') ? [] : ['--insecure']), ...(worker ? ['--worker'] : [])];
    let found;
    try {
      const { stdout } = await promisify(execFile)(run, [...flags, ...files], { timeout: LIMIT_MS, killSignal: 'SIGKILL', maxBuffer: 2 ** 26 });
      found = JSON.parse(stdout);
    } catch (error) {
      found = { status: undefined, message: error.killed ? 'it does not end' : String(error.stderr || error), subtests: [] };
    }
    for (const subtest of subtestsOf(found)) yield { test, ...subtest };
  }
}
