// The parts of a global object that QuickJS lacks: events, signals, errors, a console.

const { host } = globalThis;

globalThis.self = globalThis;
globalThis.isSecureContext = host.isSecure;

const print = (...values) => host.print(values.map(String).join(' '));
globalThis.console = { log: print, info: print, warn: print, error: print, debug() {} };
globalThis.print = print;
globalThis.readFile = host.readFile;
globalThis.performance ??= { now: host.now };

globalThis.Event ??= class Event {
  #type;
  defaultPrevented = false;
  stopped = false;

  constructor(type) {
    this.#type = String(type);
  }

  get type() {
    return this.#type;
  }

  preventDefault() {
    this.defaultPrevented = true;
  }

  stopImmediatePropagation() {
    this.stopped = true;
  }
};

class Target {
  #listeners = new Map();

  addEventListener(type, listener, { once = false } = {}) {
    const list = this.#listeners.get(type) ?? [];
    if (!list.some((known) => known.listener === listener)) this.#listeners.set(type, [...list, { listener, once }]);
  }

  removeEventListener(type, listener) {
    this.#listeners.set(type, (this.#listeners.get(type) ?? []).filter((known) => known.listener !== listener));
  }

  has(type) {
    return this.#listeners.get(type)?.length > 0;
  }

  dispatchEvent(event) {
    const receiver = this === target ? globalThis : this;
    event.target ??= receiver;
    for (const { listener, once } of this.#listeners.get(event.type) ?? []) {
      if (once) this.removeEventListener(event.type, listener);
      if (typeof listener === 'function') listener.call(receiver, event);
      else listener.handleEvent(event);
      if (event.stopped) break;
    }
    return !event.defaultPrevented;
  }
}

globalThis.EventTarget ??= Object.defineProperty(Target, 'name', { value: 'EventTarget' });

// The global object is a target too.
const target = new Target();
export const listensTo = (type) => target.has(type) || typeof globalThis[`on${type}`] === 'function';
for (const name of ['addEventListener', 'removeEventListener', 'dispatchEvent']) globalThis[name] = target[name].bind(target);

globalThis.DOMException ??= class DOMException extends Error {
  #name;

  constructor(message = '', name = 'Error') {
    super(message);
    this.#name = name;
  }

  get name() {
    return this.#name;
  }
};

/** Proves that a signal is made here. */
const KEY = Symbol('key');
let abort;

globalThis.AbortSignal ??= class AbortSignal extends EventTarget {
  #reason;
  #aborted = false;
  #sources = [];
  #dependents = new Set();

  static {
    abort = (signal, reason) => signal.#abort(reason);
  }

  constructor(key) {
    super();
    if (key !== KEY) throw new TypeError('Illegal constructor');
  }

  static abort(reason) {
    const controller = new AbortController();
    controller.abort(reason);
    return controller.signal;
  }

  static timeout(milliseconds) {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new DOMException('The operation timed out.', 'TimeoutError')), milliseconds);
    return controller.signal;
  }

  /** A signal follows its sources while it has listeners, so that no source keeps it for ever. */
  static any(signals) {
    const signal = new AbortSignal(KEY);
    signal.#sources = [...signals].flatMap((source) => (source.#sources.length > 0 ? source.#sources : [source]));
    return signal;
  }

  addEventListener(...given) {
    super.addEventListener(...given);
    this.#follow();
  }

  removeEventListener(...given) {
    super.removeEventListener(...given);
    this.#follow();
  }

  #follow() {
    for (const source of this.#sources) {
      if (this.has('abort')) source.#dependents.add(this);
      else source.#dependents.delete(this);
    }
  }

  get aborted() {
    return this.#aborted || this.#sources.some(({ aborted }) => aborted);
  }

  get reason() {
    return this.#aborted ? this.#reason : this.#sources.find(({ aborted }) => aborted)?.reason;
  }

  throwIfAborted() {
    if (this.aborted) throw this.reason;
  }

  #abort(reason) {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    const event = new Event('abort');
    this.dispatchEvent(event);
    this.onabort?.(event);
    for (const dependent of this.#dependents) dependent.#abort(reason);
  }
};

globalThis.AbortController ??= class AbortController {
  #signal = new AbortSignal(KEY);

  get signal() {
    return this.#signal;
  }

  abort(reason = new DOMException('This operation was aborted', 'AbortError')) {
    abort(this.#signal, reason);
  }
};
