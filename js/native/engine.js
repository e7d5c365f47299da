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
const VERSION = 5;

/** Threads inherit environment data from the thread that starts them. */
const KEY = 'navlocks.engine';

// The engines, as the addon numbers them.
const NATIVE = 0;
const WASM = 1;

const NO_WASM = 'this package was built without its WebAssembly engine: leave out NAVLOCKS_ENGINE, or use connect()';

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

/**
 * Loads the addon, which knows the engine of the process: the first thread that asks has chosen it,
 * also a worker, whose environment data no other thread sees.
 */
function loadNative(path, wanted) {
  const { addon, problem } = loadAddon(path);
  if (addon === undefined) return { problem };
  return addon.choose(wanted) === NATIVE ? choose('native', path, addon) : { isWasm: true };
}

/** The engine in WebAssembly is in the main thread. */
function loadWasm(path) {
  if (!isMainThread) return { engine: reach(VERSION) };
  if (path === undefined) return { problem: NO_WASM };
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
  if (first?.kind === 'wasm') return loadWasm(findWasm());
  const path = kind === 'native' ? undefined : findWasm();
  // Chosen only if it is there.
  if (kind === 'wasm' && path === undefined) return { problem: NO_WASM };
  const native = loadNative(first?.path ?? findAddon(), kind === 'wasm' ? WASM : NATIVE);
  const usesWasm = native.isWasm || (native.engine === undefined && path !== undefined);
  return usesWasm ? loadWasm(path ?? findWasm()) : native;
}
