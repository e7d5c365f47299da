// One request from its start to its end: pending, then held.
//
// An entry sends its request through a transport, which has
//
//   clientId            the id of this client in queries
//   space               its lock space, { origin, partition }
//   request(entry)      requests entry.scope with entry.mode, entry.limit, entry.wait, entry.tag,
//                       entry.maxHold, within the lock of entry.within
//   release(entry)      releases a lock; true if it was held
//   abort(entry)        aborts a pending request. One that was granted, and not delivered yet, is
//                       released now, or delivered: granted(token) then releases it
//   expire(entry)       optional: takes the lock away because its time is over. Without it the
//                       transport does so itself
//   downgrade(entry, mode, limit)   gives a lock a mode that allows more holders; false, or a
//                       promise of it, if the mode allows fewer
//   query()             the standard's snapshot or a promise of it, after all earlier requests
//   inspect()           the same with all details
//   blockers(id), deadlocks(), forceRelease(name)
//   task(f)             runs f in a task of its own, after all earlier deliveries
//   check()             optional: sets entry.loss where a lease ended
//   outage              optional: why the lock space is unreachable, { ms, failure }
//   watchContention(entry)       calls entry.contended() once when a request waits for its lock
//   subscribe(stream), unsubscribe(stream)   fills a stream of events, see events.js
//   keepAlive(more)     counts pending readers of streams
//
// A transport calls one of granted(token), unavailable(), aborted(cause) and refused({ name,
// message, cause }) of an entry; after a grant perhaps lost(cause). It makes each call in a task of
// its own and in engine order, and may set entry.loss earlier.

import { joined } from '../internal/lists.js';
import { invokeWithin, nearestHeld, runWithin } from './nesting.js';
import { addAbortAlgorithm } from './signals.js';

export const PENDING = 0;
export const HELD = 1;
export const OVER = 2;

/** The behaviour of a request that cannot be granted at once. */
export const WAIT = { queue: 0, ifAvailable: 1, steal: 2, stealAll: 3, overtake: 4 };

/** The longest delay that setTimeout takes. */
const DELAY_MAX = 2 ** 31 - 1;

export class Entry {
  /** Set by the transport. */
  id = 0;
  number = 0;
  answered = false;
  waits = false;
  state = PENDING;
  token = 0;
  loss = undefined;
  /** The client that stole the lock in words, where the service sends it. */
  thief = undefined;
  #controller = undefined;
  /** Set while the holder watches for contention: { promise, resolve }. */
  #contention = undefined;
  #watch = undefined;
  #timer = undefined;
  /** The caller's async context (AsyncLocalStorage), in which callback and listeners run. */
  #context;

  constructor(host, scope, options, wait) {
    this.host = host;
    this.scope = scope;
    this.mode = options.mode;
    /** The largest number of holders, for requests that are neither exclusive nor shared by all. */
    this.limit = options.limit;
    this.wait = wait;
    this.tag = options.tag;
    this.signal = options.signal;
    this.timeout = options.timeout;
    /** The milliseconds after which the lock is lost. */
    this.maxHold = options.maxHold;
    /** The trace that the request belongs to, for a service. */
    this.traceparent = options.traceparent;
    /** The entry of the lock within which the request is made. */
    this.outer = options.outer;
    this.#context = host.context?.();
    this.promise = new host.Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  /** https://w3c.github.io/web-locks/#request-a-lock */
  submit() {
    const { host, signal, timeout } = this;
    host.observer?.start(this);
    // Step 2. If signal is present, then add the algorithm signal to abort the request to signal.
    if (signal !== undefined) this.#watch = addAbortAlgorithm(signal, this, host.listen);
    if (timeout !== undefined && timeout > 0) this.#startTimer(timeout, () => this.#expire());
    // Step 3. Enqueue the following steps to the lock task queue: the transport's, in the order of
    // calls.
    try {
      host.transport.request(this);
    } catch (error) {
      this.#stopListening();
      this.fail(error);
    }
    return this.promise;
  }

  get name() {
    return typeof this.scope === 'string' ? this.scope : joined(this.scope);
  }

  /** The nearest outer entry that holds a lock in this lock space. */
  get within() {
    return nearestHeld(this.outer, this.host.transport);
  }

  get isOver() {
    return this.state === OVER || this.loss !== undefined;
  }

  isHeldBy(transport) {
    return this.state === HELD && this.loss === undefined && this.host.transport === transport;
  }

  get ifAvailable() {
    return this.wait === WAIT.ifAvailable;
  }

  get steal() {
    return this.wait === WAIT.steal || this.wait === WAIT.stealAll;
  }

  /** Calls `expire` after this time, unless the timer is removed before. */
  #startTimer(milliseconds, expire) {
    const { setTimeout } = this.host;
    this.#timer = setTimeout(() => {
      if (milliseconds > DELAY_MAX) this.#startTimer(milliseconds - DELAY_MAX, expire);
      else expire();
    }, Math.min(milliseconds, DELAY_MAX));
    return this.#timer;
  }

  /** Starts the time of the lock. Its timer does not keep the process alive. */
  #limitHold() {
    const { transport } = this.host;
    if (this.maxHold === undefined || transport.expire === undefined) return;
    const expire = () => {
      this.#timer?.unref?.();
      if (this.state === HELD && this.loss === undefined) transport.expire(this);
    };
    this.#startTimer(this.maxHold, expire).unref?.();
  }

  /** Removes signal and timer: from now on only the lock space decides. */
  #stopListening() {
    if (this.#watch !== undefined) {
      this.#watch.remove(this.signal, this);
      this.#watch = undefined;
    }
    if (this.#timer !== undefined) {
      // Called without a receiver: a browser's timers refuse every `this` but their own window.
      const { clearTimeout } = this.host;
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
  }

  /** The error of a request whose time is over. A service that is out of reach is no held lock. */
  timeoutError() {
    const { exception, transport } = this.host;
    const { outage } = transport;
    if (outage === undefined) return exception('TimeoutError', `the lock '${this.name}' was not free within ${this.timeout} ms`);
    const { ms, failure } = outage;
    const since = `out of reach for ${(ms / 1000).toFixed(1)} s: ${failure.message}`;
    const message = `the lock '${this.name}' was not granted within ${this.timeout} ms, with its service ${since}`;
    return exception('NetworkError', message, failure.cause);
  }

  #expire() {
    if (this.state !== PENDING) return;
    this.#stopListening();
    const error = this.timeoutError();
    this.host.transport.abort(this, true);
    this.failTraced(error);
  }

  /** https://w3c.github.io/web-locks/#signal-to-abort-the-request */
  cancel(reason) {
    if (this.state !== PENDING) return;
    this.#stopListening();
    // Step 1. Enqueue the steps to abort the request to the lock task queue.
    this.host.transport.abort(this);
    // Step 2. Reject request's promise with signal's abort reason.
    this.fail(reason);
  }

  /** The inner steps of https://w3c.github.io/web-locks/#process-the-lock-request-queue */
  granted(token) {
    // Step 14.1.1. If signal is aborted, release the lock. Until now it blocked other requests.
    if (this.state !== PENDING) {
      this.host.transport.release(this);
      return;
    }
    // Step 14.1.2. Remove the algorithm signal to abort the request from signal.
    this.#stopListening();
    this.state = HELD;
    this.token = token;
    this.#limitHold();
    this.host.observer?.grant(this);
    this.#run(this.begin);
  }

  unavailable() {
    if (this.state !== PENDING) return;
    this.#stopListening();
    this.host.observer?.miss(this);
    if (this.timeout === 0) this.failTraced(this.timeoutError());
    else this.#run(this.miss);
  }

  refused({ name, message, cause }) {
    if (this.state !== PENDING) return;
    this.#stopListening();
    this.failTraced(this.host.exception(name, message, cause));
  }

  aborted(cause) {
    if (this.state !== PENDING) return;
    this.#stopListening();
    this.failTraced(this.host.exception('AbortError', `the request for '${this.name}' was aborted: ${describe(cause, this.thief)}`, cause));
  }

  /** Gives the held lock a mode that allows more holders, in place. */
  async downgrade({ mode, limit }) {
    if (!this.isHeld) throw this.downgradeError();
    const allowed = await this.host.transport.downgrade(this, mode, limit);
    if (this.loss !== undefined || this.state !== HELD) throw this.downgradeError();
    if (!allowed) {
      const remedy = 'release it, then request the stricter one';
      throw this.host.exception('InvalidStateError', `the lock '${this.name}' cannot be upgraded, because two holders that upgrade would wait for each other: ${remedy}`);
    }
    this.mode = mode;
    this.limit = limit;
  }

  downgradeError() {
    if (this.loss !== undefined) return this.lossError(this.loss);
    return this.host.exception('InvalidStateError', `the lock '${this.name}' is not held, so there is nothing to downgrade`);
  }

  /** Called by the transport when a request waits for this lock. */
  contended() {
    this.#settleContention(this.state === HELD && this.loss === undefined);
  }

  get watchesContention() {
    return this.#contention !== undefined;
  }

  /** Resolves with true when a request waits for the lock, with false if the lock ends first. */
  contention() {
    if (!this.isHeld) return this.host.Promise.resolve(false);
    if (this.#contention === undefined) {
      const contention = {};
      contention.promise = new this.host.Promise((resolve) => {
        contention.resolve = resolve;
      });
      this.#contention = contention;
      this.host.transport.watchContention(this);
    }
    return this.#contention.promise;
  }

  #settleContention(isContended) {
    if (this.#contention === undefined) return;
    const { resolve } = this.#contention;
    this.#contention = undefined;
    resolve(isContended);
  }

  lost(cause) {
    this.#settleContention(false);
    this.loss = cause;
    if (this.state !== HELD) return;
    if (this.maxHold !== undefined) this.#stopListening();
    const error = this.lossError(cause);
    this.failTraced(error);
    if (this.#controller !== undefined) this.#run(this.#abortSignal, error);
  }

  #abortSignal(error) {
    this.#controller.abort(error);
  }

  #run(method, given) {
    if (this.#context === undefined) method.call(this, given);
    else this.#context.runInAsyncScope(method, this, given);
  }

  /** Releases the lock. False if it is not held, or lost with the delivery still to come. */
  release() {
    if (this.state !== HELD || this.loss !== undefined) return false;
    const released = this.host.transport.release(this);
    if (released) {
      this.state = OVER;
      if (this.maxHold !== undefined) this.#stopListening();
      if (this.#contention !== undefined) this.#settleContention(false);
    }
    return released;
  }

  /** Releases a lock without a callback, and ends its request. */
  releaseAndEnd() {
    const released = this.release();
    if (released) this.host.observer?.end(this, undefined);
    return released;
  }

  succeed(value) {
    this.state = OVER;
    this.host.observer?.end(this, undefined);
    this.resolve(value);
  }

  fail(reason) {
    this.state = OVER;
    this.host.observer?.end(this, reason);
    this.reject(reason);
  }

  /** Fails with an error of this package, and adds the awaiting functions to its stack. */
  failTraced(error) {
    const { trace } = this.host;
    if (trace !== undefined) {
      const { resolve } = this;
      this.reject = (reason) => resolve(trace(reason));
    }
    this.fail(error);
  }

  lossError(cause) {
    return this.host.exception('AbortError', `the lock '${this.name}' was lost: ${describe(cause, this.thief)}`, cause);
  }

  /** The signal that aborts when the lock is lost, with the cause. Created at the first use. */
  get lossSignal() {
    this.host.transport.check?.();
    this.#controller ??= new this.host.AbortController();
    const { signal } = this.#controller;
    // After a pause of the process this getter may run before the loss is delivered.
    if (this.loss !== undefined && !signal.aborted) this.#run(this.#abortSignal, this.lossError(this.loss));
    return signal;
  }

  /** Whether this client holds the lock. */
  get isHeld() {
    this.host.transport.check?.();
    return this.state === HELD && this.loss === undefined;
  }
}

function describe(cause, thief = 'another request') {
  switch (cause) {
    case 'Stolen':
      return `${thief} stole it`;
    case 'ForceReleased':
      return 'it was force-released';
    case 'HeldTooLong':
      return 'it was held for as long as its maximum hold allows';
    case 'Evicted':
      return 'its client was suspended, and another client requested it';
    case 'Suspended':
      return 'its client was suspended';
    case 'ClientEnded':
      return 'its client was ended';
    case 'LeaseLapsed':
      return 'the lock service was out of reach for longer than the lease';
    case 'ServiceGone':
      return 'the lock service that granted it has ended';
    case 'NotReclaimed':
      return 'its service was restarted, and the lock could not be claimed there';
    default:
      return `${cause}`;
  }
}

/** A request with a callback: the lock is held until the callback's promise settles. */
export class CallbackEntry extends Entry {
  /** How many callbacks of reentrant requests work under this lock. */
  #guests = 0;
  /** Ends the lock, when only guests are left. */
  #leave;

  constructor(host, scope, options, wait, callback) {
    super(host, scope, options, wait);
    this.callback = callback;
  }

  /** Keeps the lock until the promise settles, also after its own callback has ended. */
  async keepFor(work) {
    this.#guests++;
    try {
      await work;
    } catch {
      // The caller of the reentrant request is told.
    }
    if (--this.#guests === 0) this.#leave?.();
  }

  begin() {
    this.#run(this.host.lock(this), this);
  }

  miss() {
    this.#run(null, undefined);
  }

  /**
   * Invokes the callback, and releases the lock when the promise of its result settles.
   * https://w3c.github.io/web-locks/#lock-concept
   */
  async #run(lock, entry) {
    const { callback } = this;
    this.callback = undefined;
    try {
      this.#end(this.succeed, await invokeWithin(entry, callback, lock));
    } catch (reason) {
      this.#end(this.fail, reason);
    }
  }

  #end(settle, value) {
    if (this.#guests > 0) {
      this.#leave = () => this.#end(settle, value);
      return;
    }
    // Step 1. Release the lock.
    this.release();
    // Step 2. Resolve lock's released promise with lock's waiting promise, unless a loss rejects
    // it.
    if (this.loss === undefined) this.settle(settle, value);
  }

  settle(settle, value) {
    settle.call(this, value);
  }
}

/** A request whose callback knows its lock also after an await. */
export class CarryingEntry extends CallbackEntry {
  begin() {
    runWithin(this, () => super.begin());
  }
}
