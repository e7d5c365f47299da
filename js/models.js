// requestLock and requestFlag: the three release models of the explainer and the drafts before it.

import { CallbackEntry, Entry, HELD } from './entry.js';
import { nameClass } from './locks.js';

/** A lock that is held until all promises that it was given fulfil, one of them rejects, or it is released. */
export class Lock {
  #entry;
  #scope;
  #released;
  #settle;
  #waiting = 1;

  constructor(entry) {
    if (!(entry instanceof Entry)) throw new TypeError('Illegal constructor');
    this.#entry = entry;
    this.#scope = typeof entry.scope === 'string' ? Object.freeze([entry.scope]) : entry.scope;
    this.#released = new entry.host.Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    entry.over = (error) => this.#end(error);
  }

  /** The names, sorted; frozen. */
  get scope() {
    return this.#scope;
  }

  get mode() {
    return this.#entry.mode;
  }

  /** Settles when the lock is released: rejects with what the first of its promises rejected with, or when the lock is lost. */
  get released() {
    return this.#released;
  }

  /** Aborts when the lock is lost. Its reason is an AbortError, whose `cause` says why. */
  get signal() {
    return this.#entry.lossSignal;
  }

  /** Holds the lock until the promise fulfils. Returns `released`. */
  waitUntil(promise) {
    const { host, state } = this.#entry;
    if (state !== HELD) return host.Promise.reject(new host.TypeError('the lock is released already'));
    this.#waiting++;
    this.#follow(promise);
    return this.#released;
  }

  /** Releases at once, whatever it waits for. False if it was released before. */
  release() {
    return this.#release();
  }

  async #follow(promise) {
    try {
      await promise;
    } catch (reason) {
      if (this.#entry.letGo()) this.#settle.reject(reason);
      return;
    }
    this.#fulfilled();
  }

  #fulfilled() {
    if (--this.#waiting === 0) this.#release();
  }

  // Not by way of release(): a lock is the caller's, who may replace its members.
  #release() {
    const released = this.#entry.letGo();
    if (released) this.#end();
    return released;
  }

  /** Settles `released`. Few callers look at it for a loss, so that rejection counts as handled. */
  #end(error) {
    if (error === undefined) return this.#settle.resolve();
    handle(this.#released);
    this.#settle.reject(error);
  }

  /** The first promise that it waits for fulfils two microtasks later: after the caller who awaits the lock. */
  static async releaseItself(lock) {
    await undefined;
    await undefined;
    lock.#fulfilled();
  }
}

/** What a lock was called first. */
export class Flag extends Lock {}

for (const [Class, name] of [[Lock, 'Lock'], [Flag, 'Flag']]) {
  nameClass(Class, name);
  Object.defineProperty(Class.prototype, Symbol.toStringTag, { value: name, configurable: true });
}

async function handle(promise) {
  try {
    await promise;
  } catch {
    // The signal tells, and whoever asks for the promise hears of it.
  }
}

const { releaseItself } = Lock;

/** These documents have an AbortError of their own; the signal's reason is its cause. */
function abortError(host, reason) {
  return host.exception('AbortError', 'the request was aborted by its signal', reason);
}

/** A request whose promise gives a lock. */
class LockEntry extends Entry {
  constructor(host, scope, options, wait, make) {
    super(host, scope, options, wait);
    this.make = make;
  }

  cancel(reason) {
    super.cancel(this.signal === undefined ? reason : abortError(this.host, reason));
  }

  begin() {
    if (this.loss === undefined) this.resolve(this.make(this));
    else this.fail(this.lossError(this.loss));
  }

  miss() {
    this.succeed(null);
  }

  fail(reason) {
    super.fail(reason);
    this.over?.(reason);
  }
}

/** A request of the callback form: its promise is that of the callback, or rejects when the lock is lost. */
class ScopedEntry extends CallbackEntry {
  cancel(reason) {
    super.cancel(abortError(this.host, reason));
  }

  release() {
    const released = super.release();
    if (released) this.over?.();
    return released;
  }

  fail(reason) {
    super.fail(reason);
    if (this.loss !== undefined) this.over?.(reason);
  }

  /** The lock itself is released, and settles `released`; the request goes on until the end of its callback. */
  letGo() {
    return super.release();
  }
}

const releasingItself = (Class) => (entry) => {
  const lock = new Class(entry);
  releaseItself(lock);
  return lock;
};

const heldUntilTold = (entry) => new Lock(entry);

/** The members that a document's options have, in lexicographical order. */
const LOCK_OPTIONS = ['ifAvailable', 'mode', 'signal'];
const FLAG_OPTIONS = ['timeout'];

/** @param environment as environmentOf() returns it */
export function createModels({ host: given, interfaces: { internals } }) {
  const { Promise, TypeError, convert, checkEnvironment, checkOptions } = internals;
  const host = { ...given, TypeError, lock: (entry) => new Lock(entry) };

  /** A promise of the entry's own: a wrapper around it would settle too late for `waitUntil()`. Mistakes reject. */
  function request(scope, convertOptions, createEntry) {
    try {
      const names = convert.scope(scope, true);
      const options = convertOptions();
      checkEnvironment(host);
      const { signal } = options;
      if (signal?.aborted) throw abortError(host, signal.reason);
      return createEntry(names, options, checkOptions(options)).ask();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  const making = (make) => (names, options, wait) => new LockEntry(host, names, options, wait, make);
  const lockOptions = (options) => () => convert.dictionary(options, LOCK_OPTIONS);

  /** Gives a lock that releases itself, in a microtask, unless `waitUntil()` is called before. */
  const auto = {
    requestLock: (scope, options = undefined) => request(scope, lockOptions(options), making(releasingItself(Lock))),
  };

  /** Gives a lock that is held until `release()` is called, whatever else it waits for. */
  const explicit = {
    requestLock: (scope, options = undefined) => request(scope, lockOptions(options), making(heldUntilTold)),
  };

  /** Runs a callback under the lock and gives its result. */
  const scoped = {
    requestLock(scope, callback, options = undefined) {
      const convertOptions = () => {
        convert.callback(callback);
        return lockOptions(options)();
      };
      return request(scope, convertOptions, (names, settings, wait) => new ScopedEntry(host, names, settings, wait, callback));
    },
  };

  /** The callback form if there is a callback, and the lock that releases itself otherwise. */
  function requestLock(scope, options = undefined, more = undefined) {
    return typeof options === 'function' ? scoped.requestLock(scope, options, more) : auto.requestLock(scope, options);
  }

  /** The first draft: the mode is required, and a wait is limited by a timeout in milliseconds. */
  function requestFlag(scope, mode, options = undefined) {
    const convertOptions = () => {
      const converted = convert.mode(mode);
      return { ...convert.dictionary(options, FLAG_OPTIONS), mode: converted };
    };
    return request(scope, convertOptions, making(releasingItself(Flag)));
  }

  return { auto, explicit, scoped, requestLock, requestExplicitLock: explicit.requestLock, requestFlag };
}
