// requestLock and requestFlag: the three release styles of the explainer and the drafts before it.

import { CallbackEntry, Entry, HELD } from '../standard/entry.js';
import { nameClass } from '../standard/locks.js';

/** A lock that is held until all its promises fulfil, one of them rejects, or it is released. */
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

  /** Settles when the lock is released. Rejects if one of its promises does or the lock is lost. */
  get released() {
    return this.#released;
  }

  /** Aborts when the lock is lost. Its reason is an AbortError with the loss as `cause`. */
  get signal() {
    return this.#entry.lossSignal;
  }

  /** Holds the lock until the promise fulfils. Returns `released`. */
  waitUntil(promise) {
    const { host, state } = this.#entry;
    if (state !== HELD) return host.Promise.reject(new host.TypeError('the lock is already released: request it again'));
    this.#waiting++;
    this.#follow(promise);
    return this.#released;
  }

  /** Releases the lock, even if promises are pending. False if it was released before. */
  release() {
    return this.#release();
  }

  async #follow(promise) {
    try {
      await promise;
    } catch (reason) {
      if (this.#entry.releaseAndEnd()) this.#settle.reject(reason);
      return;
    }
    this.#fulfilled();
  }

  #fulfilled() {
    if (--this.#waiting === 0) this.#release();
  }

  // Does not call release(), which a caller may have replaced.
  #release() {
    const released = this.#entry.releaseAndEnd();
    if (released) this.#end();
    return released;
  }

  /** Settles `released`. A loss counts as handled, because few callers read the promise. */
  #end(error) {
    if (error === undefined) return this.#settle.resolve();
    handle(this.#released);
    this.#settle.reject(error);
  }

  /** Fulfils its first promise after two microtasks, when the awaiting caller has run. */
  static async releaseItself(lock) {
    await undefined;
    await undefined;
    lock.#fulfilled();
  }
}

/** A lock of the first draft. */
export class Flag extends Lock {}

for (const [Class, name] of [[Lock, 'Lock'], [Flag, 'Flag']]) {
  nameClass(Class, name);
  Object.defineProperty(Class.prototype, Symbol.toStringTag, { value: name, configurable: true });
}

async function handle(promise) {
  try {
    await promise;
  } catch {
    // The signal reports the loss, and so does the promise to its readers.
  }
}

const { releaseItself } = Lock;

/** Returns the AbortError of these drafts; the signal's reason is its cause. */
function abortError(host, reason) {
  return host.exception('AbortError', 'the request was aborted by its signal', reason);
}

/** A request whose promise resolves with a lock. */
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

/** A request with a callback: its promise follows the callback, and rejects if the lock is lost. */
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

  /** Releases the lock; the request ends with its callback. */
  releaseAndEnd() {
    return super.release();
  }
}

const releasingItself = (Class) => (entry) => {
  const lock = new Class(entry);
  releaseItself(lock);
  return lock;
};

const heldUntilReleased = (entry) => new Lock(entry);

/** The members of each draft's options, in lexicographical order. */
const LOCK_OPTIONS = ['ifAvailable', 'mode', 'signal'];
const FLAG_OPTIONS = ['timeout'];

/** @param environment as environmentOf() returns it */
export function createStyles({ host: given, interfaces: { internals } }) {
  const { Promise, TypeError, convert, checkEnvironment, checkOptions } = internals;
  const host = { ...given, TypeError, lock: (entry) => new Lock(entry) };

  /** Returns the entry's own promise: a wrapper would settle too late for `waitUntil()`. */
  function request(scope, convertOptions, createEntry) {
    try {
      const names = convert.scope(scope, true);
      const options = convertOptions();
      checkEnvironment(host);
      const { signal } = options;
      if (signal?.aborted) throw abortError(host, signal.reason);
      return createEntry(names, options, checkOptions(options)).submit();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  const making = (make) => (names, options, wait) => new LockEntry(host, names, options, wait, make);
  const lockOptions = (options) => () => convert.dictionary(options, LOCK_OPTIONS);

  /** Resolves with a lock that releases itself in a microtask, unless `waitUntil()` is called. */
  const auto = {
    requestLock: (scope, options = undefined) => request(scope, lockOptions(options), making(releasingItself(Lock))),
  };

  /** Resolves with a lock that is held until `release()` is called. */
  const explicit = {
    requestLock: (scope, options = undefined) => request(scope, lockOptions(options), making(heldUntilReleased)),
  };

  /** Runs a callback under the lock and resolves with its result. */
  const scoped = {
    requestLock(scope, callback, options = undefined) {
      const convertOptions = () => {
        convert.callback(callback);
        return lockOptions(options)();
      };
      return request(scope, convertOptions, (names, settings, wait) => new ScopedEntry(host, names, settings, wait, callback));
    },
  };

  /** Calls `scoped.requestLock()` if there is a callback, and `auto.requestLock()` otherwise. */
  function requestLock(scope, options = undefined, more = undefined) {
    return typeof options === 'function' ? scoped.requestLock(scope, options, more) : auto.requestLock(scope, options);
  }

  /** Requests a flag of the first draft: with a required mode and a timeout in milliseconds. */
  function requestFlag(scope, mode, options = undefined) {
    const convertOptions = () => {
      const converted = convert.mode(mode);
      return { ...convert.dictionary(options, FLAG_OPTIONS), mode: converted };
    };
    return request(scope, convertOptions, making(releasingItself(Flag)));
  }

  return { auto, explicit, scoped, requestLock, requestExplicitLock: explicit.requestLock, requestFlag };
}
