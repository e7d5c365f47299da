// One public test in Node, in the main thread or in another one. Prints what passed as JSON.
// node program.js LOCKS PATH [thread]
//
// LOCKS: `native`, `installed` for those of the process, or the address of a service.

import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { runInThisContext } from 'node:vm';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { read, root, scriptsOf } from './checkout.js';

const [locks, path, place] = isMainThread ? process.argv.slice(2) : workerData;

/** Hears what the global of the web would hear. */
const events = new EventTarget();

/** What a script of the web expects of its global, and Node does not have. */
async function becomeWeb() {
  const { fetch } = globalThis;
  Object.assign(globalThis, {
    self: globalThis,
    location: new URL(path, 'http://localhost'),
    GLOBAL: { isWindow: () => true, isWorker: () => false, isShadowRealm: () => false },
    // What is exposed here is what a window would have.
    Window: class Window {},
    Worker: WebWorker,
    fetch: (url, ...given) => (String(url).startsWith('/') ? fileResponse(url) : fetch(url, ...given)),
    addEventListener: events.addEventListener.bind(events),
    removeEventListener: events.removeEventListener.bind(events),
  });
  process.on('unhandledRejection', (reason) => {
    events.dispatchEvent(Object.assign(new Event('unhandledrejection'), { reason }));
  });
  if (locks === 'native') return;
  const { connect, install } = await import('navlocks');
  install(globalThis, locks === 'installed' ? undefined : await connect(locks));
}

async function fileResponse(url) {
  return new Response(readFileSync(pathToFileURL(`${root}${url}`)));
}

/** A worker as the web has them, of a script of the checkout. */
class WebWorker extends EventTarget {
  #thread;

  constructor(script) {
    super();
    const workerData = [locks, new URL(script, location.href).pathname, 'worker'];
    this.#thread = new Worker(new URL(import.meta.url), { workerData });
    this.#thread.on('message', (data) => this.dispatchEvent(new MessageEvent('message', { data })));
  }

  postMessage(message) {
    this.#thread.postMessage(message);
  }

  terminate() {
    this.#thread.terminate();
  }
}

function load(script) {
  const file = script === '/resources/WebIDLParser.js' ? '/resources/webidl2/lib/webidl2.js' : script;
  runInThisContext(read(file), { filename: file });
}

/** The thread behind a WebWorker. */
function serve() {
  // Scripts answer the target of the message.
  events.postMessage = (message) => parentPort.postMessage(message);
  load(path);
  parentPort.on('message', (data) => events.dispatchEvent(new MessageEvent('message', { data })));
}

function test() {
  return new Promise((resolve) => {
    load('/resources/testharness.js');
    globalThis.add_completion_callback((tests, { status, message }) => {
      resolve({ status, message, subtests: tests.map(({ name, status, message }) => ({ name, status, message })) });
    });
    for (const script of [...scriptsOf(path), path]) load(script);
    globalThis.done();
  });
}

if (place === 'thread' && isMainThread) {
  new Worker(new URL(import.meta.url), { workerData: [locks, path, place] }).on('message', finish);
} else {
  await becomeWeb();
  if (place === 'worker') serve();
  else finish(await test());
}

function finish(result) {
  if (!isMainThread) return parentPort.postMessage(result);
  process.stdout.write(JSON.stringify(result), () => process.exit());
}
