// Chooses the engine of this process, once: the native addon, or WebAssembly in the main thread.
// Two engines would both grant.

import process from 'node:process';
import { getEnvironmentData, isMainThread, setEnvironmentData } from 'node:worker_threads';
import { findAddon, loadAddon } from './addon.js';
import { serveWorkers } from './ports.js';
import { reach } from './remote.js';
import { findWasm, instantiate } from './wasm.js';

/**
 * The version of the engine's functions, numbers and messages. Copies of the package must have the
 * same.
 */
const VERSION = 4;

/** Threads inherit environment data from the thread that starts them. */
const KEY = 'navlocks.engine';

/** The choice of the process. In the main thread all copies of the package share its instance. */
class Choice {
  version = VERSION;
  /** Private, because a worker gets a structured clone. */
  #instance;

  constructor(kind, path, instance) {
    this.kind = kind;
    this.path = path;
    this.#instance = instance;
  }

  get instance() {
    return this.#instance;
  }
}

function choose(kind, path, instance) {
  setEnvironmentData(KEY, new Choice(kind, path, instance));
  return { engine: instance };
}

/** Returns the environment variable `NAVLOCKS_ENGINE`. Deno may deny the access. */
function readVariable() {
  try {
    return process.env.NAVLOCKS_ENGINE || undefined;
  } catch {
    return undefined;
  }
}

function loadNative(path) {
  const { addon, problem } = loadAddon(path);
  return addon === undefined ? { problem } : choose('native', path, addon);
}

/** The engine in WebAssembly is in the main thread. */
function loadWasm(path) {
  if (!isMainThread) return { engine: reach(VERSION) };
  try {
    const engine = instantiate(path);
    serveWorkers(engine, VERSION);
    return choose('wasm', path, engine);
  } catch ({ message }) {
    return { problem: `the WebAssembly engine of navlocks cannot be loaded: ${message}: install navlocks again, or use connect()` };
  }
}

/** Loads the engine: { engine }, or { problem } with a sentence for the user. */
export function loadEngine() {
  const first = getEnvironmentData(KEY);
  if (first !== undefined && first.version !== VERSION) {
    const problem = `another version of navlocks is loaded in this process, from ${first.path}`;
    return { problem: `${problem}: use one version, or connect() to a service` };
  }
  if (first?.instance !== undefined) return { engine: first.instance };
  const kind = first?.kind ?? readVariable();
  if (kind !== undefined && kind !== 'native' && kind !== 'wasm') {
    return { problem: `NAVLOCKS_ENGINE is '${kind}': set it to 'native' or 'wasm', or leave it out` };
  }
  const native = kind === 'wasm' ? {} : loadNative(first?.path ?? findAddon());
  const path = kind === 'native' ? undefined : findWasm();
  if (native.engine !== undefined || (path === undefined && kind !== 'wasm')) return native;
  if (path !== undefined || first !== undefined) return loadWasm(path);
  return { problem: 'this package was built without its WebAssembly engine: leave out NAVLOCKS_ENGINE, or use connect()' };
}
