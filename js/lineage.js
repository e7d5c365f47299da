// The four older APIs of the same lineage, on the same engine and in the same lock space as `locks`.
//
//   requestFlag(scope, mode, { timeout })          origin flags
//   requestLock(scope, options)                    locks that release themselves
//   requestLock(scope, callback, options)          … or are held by a callback
//   requestExplicitLock(scope, options)            … or until they are told to
//   acquire(name, [options,] callback), forceRelease(name), query()
//
// New code is better off with `locks`.

import { CallbackEntry, Entry, HELD, PENDING, WAIT } from './entry.js';
import { nameClass } from './locks.js';
import { internals } from './node.js';
import { addAbortAlgorithm } from './signals.js';

const { convert, host, exception, checkEnvironment } = internals;

// ---- acquire

/** A lock request of the third draft: its signal rejects the promise also after the grant, while the lock stays. */
class AcquireEntry extends CallbackEntry {
  #watch;
  #signal;

  constructor(name, options, wait, callback) {
    super(host, name, { ...options, signal: undefined }, wait, callback);
    this.#signal = options.signal;
  }

  ask() {
    if (this.#signal !== undefined && !this.#signal.aborted) {
      const algorithm = { cancel: () => this.#abort() };
      this.#watch = { algorithm, watch: addAbortAlgorithm(this.#signal, algorithm, host.listen) };
    }
    return super.ask();
  }

  #abort() {
    // Its promise is rejected, whatever becomes of the lock.
    const error = exception('AbortError', `the request for '${this.name}' was aborted`);
    if (this.state === PENDING) this.cancel(error);
    else this.reject(error);
  }

  succeed(value) {
    this.#stopListening();
    super.succeed(value);
  }

  fail(reason) {
    this.#stopListening();
    super.fail(reason);
  }

  #stopListening() {
    this.#watch?.watch.remove(this.#signal, this.#watch.algorithm);
    this.#watch = undefined;
  }

  /** The queue is processed first, callbacks included; then the promise resolves. */
  settle(settle, value) {
    host.transport.task(() => settle.call(this, value));
  }
}

/** The third draft, one name and a callback. No options exclude each other; a steal also ends all who wait. */
export async function acquire(name, options, callback = undefined) {
  if (arguments.length < 2) throw new TypeError('acquire() needs a name and a callback');
  const converted = convert.domString(name, 'the name');
  const given = arguments.length > 2;
  const settings = convert.lockOptions(given ? options : undefined, false);
  const work = convert.callback(given ? callback : options);
  checkEnvironment(host);
  const wait = settings.steal ? WAIT.stealAll : settings.ifAvailable ? WAIT.ifAvailable : WAIT.queue;
  return new AcquireEntry(converted, settings, wait, work).ask();
}

/** Takes away all locks held on a name, in one step. Their promises reject with an AbortError. */
export function forceRelease(name) {
  const converted = convert.domString(name, 'the name');
  checkEnvironment(host);
  host.transport.forceRelease(converted);
}

/** The locks held, in grant order, and the requests pending: names and modes. */
export async function query() {
  checkEnvironment(host);
  const { held, pending } = await host.transport.query();
  const info = ({ name, mode }) => ({ name, mode });
  return { held: held.map(info), pending: pending.map(info) };
}

// ---- requestLock, requestFlag

/** A lock of the first drafts. It is held until all promises that it was given fulfil, one of them rejects, or it is released. */
export class Lock {
  #entry;
  #scope;
  #released;
  #settle;
  #waiting = 1;

  constructor(entry) {
    if (!(entry instanceof SelfReleasingEntry || entry instanceof ScopedEntry)) throw new TypeError('Illegal constructor');
    this.#entry = entry;
    this.#scope = typeof entry.scope === 'string' ? Object.freeze([entry.scope]) : entry.scope;
    this.#released = new Promise((resolve, reject) => {
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

  /** Settles when the lock is released: fulfils, or rejects with what the first of its promises rejected with. */
  get released() {
    return this.#released;
  }

  /** Holds the lock until the promise fulfils. Returns `released`. */
  waitUntil(promise) {
    if (this.#entry.state !== HELD) return Promise.reject(new TypeError('the lock is released already'));
    this.#waiting++;
    Promise.resolve(promise).then(
      () => this.#fulfilled(),
      (reason) => {
        if (this.#entry.release()) this.#settle.reject(reason);
      },
    );
    return this.#released;
  }

  /** Releases at once, whatever it waits for. False if it was released before. */
  release() {
    return this.#release();
  }

  // Not by way of release(): a lock is the caller's, who may replace its members.
  #release() {
    const released = this.#entry.release();
    if (released) this.#end();
    return released;
  }

  #fulfilled() {
    if (--this.#waiting === 0) this.#release();
  }

  /** Settles `released`. A loss is no news that every caller listens to, so that rejection counts as handled. */
  #end(error) {
    if (error === undefined) return this.#settle.resolve();
    this.#released.catch(() => {});
    this.#settle.reject(error);
  }

  /** The first promise that it waits for, which fulfils in a microtask. */
  static releaseItself(lock) {
    Promise.resolve().then(() => lock.#fulfilled());
  }
}

/** What a lock was called first. */
export class Flag extends Lock {}

nameClass(Lock, 'Lock');
nameClass(Flag, 'Flag');
for (const { prototype, name } of [Lock, Flag]) Object.defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });

class SelfReleasingEntry extends Entry {
  constructor(scope, options, wait, make) {
    super(host, scope, options, wait);
    this.make = make;
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
  release() {
    const released = super.release();
    if (released) this.over?.();
    return released;
  }

  fail(reason) {
    super.fail(reason);
    if (this.loss !== undefined) this.over?.(reason);
  }
}

const releasesItself = (Class) => (entry) => {
  const lock = new Class(entry);
  // Two microtasks later than whoever awaits the lock.
  queueMicrotask(() => Lock.releaseItself(lock));
  return lock;
};

const heldUntilTold = (entry) => new Lock(entry);

/** A promise of the entry's own: a wrapper around it would settle too late for `waitUntil()`. Mistakes reject. */
function request(scope, convertOptions, createEntry) {
  try {
    const names = convert.scope(scope, true);
    const options = { ...convertOptions(), steal: false, overtake: false };
    checkEnvironment(host);
    return createEntry(names, options, internals.checkOptions(options)).ask();
  } catch (error) {
    return Promise.reject(error);
  }
}

const making = (make) => (names, options, wait) => new SelfReleasingEntry(names, options, wait, make);

/**
 * With a callback: runs it under the lock and gives its result. Without: gives a lock that releases itself, in a microtask,
 * unless `waitUntil()` is called before.
 */
export function requestLock(scope, ...rest) {
  if (typeof rest[0] === 'function') return scoped(scope, ...rest);
  return request(scope, () => convert.lockOptions(rest[0], true), making(releasesItself(Lock)));
}

const scopedHost = { ...host, lock: (entry) => new Lock(entry) };

function scoped(scope, callback, options) {
  const createEntry = (names, converted, wait) => new ScopedEntry(scopedHost, names, converted, wait, callback);
  return request(scope, () => convert.lockOptions(options, true), createEntry);
}

/** A lock that is held until `release()` is called, whatever else it waits for. */
export function requestExplicitLock(scope, options = undefined) {
  return request(scope, () => convert.lockOptions(options, true), making(heldUntilTold));
}

/** The first draft: the mode is required, and a wait is limited by a timeout in milliseconds. */
export function requestFlag(scope, mode, options = undefined) {
  const convertOptions = () => ({
    mode: convert.mode(mode),
    timeout: options?.timeout === undefined ? undefined : convert.timeout(options.timeout),
  });
  return request(scope, convertOptions, making(releasesItself(Flag)));
}
