// Runs one public test in Node, in the main thread or a worker, and prints its results as JSON.
// node program.js LOCKS PATH [thread]
//
// LOCKS: `native`, `installed` for the locks of the process, or the address of a service.

import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { runInThisContext } from 'node:vm';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { read, root, scriptsOf, scriptsOfPage } from './checkout.js';

const [locks, path, place, isSecureContext = path.includes('.https.')] = isMainThread ? process.argv.slice(2) : workerData;

/** Receives the events of the web's global object. */
const events = new EventTarget();

/** The interface that Node 20 lacks. */
class Navigator {
  #agent = `Node.js/${process.versions.node}`;

  get userAgent() {
    return this.#agent;
  }
}

/** Defines the globals that scripts of the web need and Node lacks. */
async function becomeWeb() {
  const { fetch } = globalThis;
  Object.assign(globalThis, {
    self: globalThis,
    location: new URL(path, 'http://localhost'),
    GLOBAL: { isWindow: () => true, isWorker: () => false, isShadowRealm: () => false },
    // The tests check what a window exposes.
    Window: class Window {},
    Worker: WebWorker,
    isSecureContext,
    fetch: (url, ...given) => (String(url).startsWith('/') ? fileResponse(url) : fetch(url, ...given)),
    addEventListener: events.addEventListener.bind(events),
    removeEventListener: events.removeEventListener.bind(events),
  });
  process.on('unhandledRejection', (reason) => {
    events.dispatchEvent(Object.assign(new Event('unhandledrejection'), { reason }));
  });
  if (globalThis.navigator === undefined) {
    const property = { writable: true, enumerable: false, configurable: true };
    Object.defineProperty(globalThis, 'Navigator', { ...property, value: Navigator });
    Object.defineProperty(globalThis, 'navigator', { ...property, value: new Navigator() });
  }
  if (locks === 'native') return;
  const { connect, install } = await import('navlocks');
  try {
    install(globalThis, locks === 'installed' ? undefined : await connect(locks));
  } catch (error) {
    if (isSecureContext) throw error;
  }
}

async function fileResponse(url) {
  return new Response(readFileSync(pathToFileURL(`${root}${url}`)));
}

/** A web worker with a script of the checkout. */
class WebWorker extends EventTarget {
  #thread;

  constructor(script) {
    super();
    const workerData = [locks, new URL(script, location.href).pathname, 'worker', isSecureContext];
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

function loadPage() {
  for (const script of scriptsOfPage(path)) {
    if (script.text !== undefined) runInThisContext(script.text, { filename: path });
    // The harness is already loaded.
    else if (!script.path.startsWith('/resources/')) load(script.path);
  }
}

/** Runs the script of a WebWorker in this thread. */
function serve() {
  // Scripts reply to the target of the message.
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
    if (path.endsWith('.html')) loadPage();
    else for (const script of [...scriptsOf(path), path]) load(script);
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
