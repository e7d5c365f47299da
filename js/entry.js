// One request during all its life: while it is pending, and while its lock is held.
//
// An entry is what a transport is given, and whom it tells. A transport is
//
//   clientId            who this client is in queries
//   space               its lock space, { origin, partition }
//   request(entry)      asks for entry.scope in entry.mode, entry.wait says how; entry.tag is shown in queries
//   release(entry)      releases a lock; true if it was held
//   abort(entry)        takes a pending request back, or releases a grant that the entry has not heard of
//   query()             the standard's snapshot or a promise of it, after all that was asked before
//   inspect()           the same with all that is known
//   blockers(id), deadlocks(), forceRelease(name)
//   task(f)             runs f in a task of its own, after what was told before
//   check()             if it is there: notes in entry.loss what time alone has taken away
//   outage              if it is there: why the lock space cannot be asked now, { ms, failure }
//   watchContention(entry)       tells entry.contended(), once, when a request waits for its lock
//   subscribe(stream), unsubscribe(stream)   fills a stream of events, see events.js
//   keepAlive(more)     counts readers of streams that wait
//
// and it tells an entry exactly one of granted(token), unavailable(), aborted(cause) and refused({ name, message, cause }), then
// after a grant perhaps lost(cause): each in a task of its own, never within a call, in the order in which it happened. What it
// knows to come it may note in entry.loss. After release(), abort(), lost() or aborted() it forgets the entry.

import { joined } from './lists.js';
import { addAbortAlgorithm } from './signals.js';

export const PENDING = 0;
export const HELD = 1;
export const OVER = 2;

/** What a request does when it cannot be granted at once. */
export const WAIT = { queue: 0, ifAvailable: 1, steal: 2, stealAll: 3, overtake: 4 };

/** The longest delay that setTimeout takes. */
const DELAY_MAX = 2 ** 31 - 1;

export class Entry {
  /** The transport's own. */
  id = 0;
  slot = 0;
  answered = false;
  waits = false;
  state = PENDING;
  token = 0;
  loss = undefined;
  #controller = undefined;
  /** A holder that watches for contention, { promise, resolve }. */
  #contention = undefined;
  #watch = undefined;
  #timer = undefined;
  /** What the platform keeps for the caller, such as Node's AsyncLocalStorage: callback and listeners run in it. */
  #context;

  constructor(host, scope, options, wait) {
    this.host = host;
    this.scope = scope;
    this.mode = options.mode;
    this.wait = wait;
    this.tag = options.tag;
    this.signal = options.signal;
    this.timeout = options.timeout;
    this.#context = host.context?.();
    this.promise = new host.Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  /** https://w3c.github.io/web-locks/#request-a-lock */
  ask() {
    const { host, signal, timeout } = this;
    host.observer?.start(this);
    // Step 2. If signal is present, then add the algorithm signal to abort the request to signal.
    if (signal !== undefined) this.#watch = addAbortAlgorithm(signal, this, host.listen);
    if (timeout !== undefined && timeout > 0) this.#startTimer(timeout);
    // Step 3. Enqueue the following steps to the lock task queue: the transport's, in the order of calls.
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

  get ifAvailable() {
    return this.wait === WAIT.ifAvailable;
  }

  get steal() {
    return this.wait === WAIT.steal || this.wait === WAIT.stealAll;
  }

  #startTimer(milliseconds) {
    const { setTimeout } = this.host;
    this.#timer = setTimeout(() => {
      if (milliseconds > DELAY_MAX) this.#startTimer(milliseconds - DELAY_MAX);
      else this.#expire();
    }, Math.min(milliseconds, DELAY_MAX));
  }

  /** Nothing but the lock space decides from here on. */
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

  timeoutError() {
    const { exception, transport } = this.host;
    const { outage } = transport;
    if (outage === undefined) return exception('TimeoutError', `the lock '${this.name}' was not free within ${this.timeout} ms`);
    const { ms, failure } = outage;
    const since = `out of reach for ${(ms / 1000).toFixed(1)} s: ${failure.message}`;
    return exception('TimeoutError', `the lock '${this.name}' was not granted within ${this.timeout} ms, with its service ${since}`, failure.cause);
  }

  #expire() {
    if (this.state !== PENDING) return;
    this.#stopListening();
    const error = this.timeoutError();
    this.host.transport.abort(this);
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

  /** It is granted: the inner steps of https://w3c.github.io/web-locks/#process-the-lock-request-queue */
  granted(token) {
    // Step 14.1.1. If signal is aborted: it was taken back then, and its lock released.
    if (this.state !== PENDING) return;
    // Step 14.1.2. Remove the algorithm signal to abort the request from signal.
    this.#stopListening();
    this.state = HELD;
    this.token = token;
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
    this.failTraced(this.host.exception('AbortError', `the request for '${this.name}' was aborted: ${describe(cause)}`, cause));
  }

  /** A request waits for this lock. */
  contended() {
    this.#settleContention(this.state === HELD && this.loss === undefined);
  }

  get watchesContention() {
    return this.#contention !== undefined;
  }

  /**
   * Resolves with true when a request waits for the lock, and with false when the lock is over
   * before.
   */
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

  /** False when there was nothing to release, also when the lock was lost and the entry is yet to hear of it. */
  release() {
    if (this.state !== HELD || this.loss !== undefined) return false;
    const released = this.host.transport.release(this);
    if (released) {
      this.state = OVER;
      if (this.#contention !== undefined) this.#settleContention(false);
    }
    return released;
  }

  /** Releases a lock that no callback holds: with that its request is over. */
  letGo() {
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

  /** Fails with an error of this package, whose stack gets the functions that await the request. */
  failTraced(error) {
    const { trace } = this.host;
    if (trace !== undefined) {
      const { resolve } = this;
      this.reject = (reason) => resolve(trace(reason));
    }
    this.fail(error);
  }

  lossError(cause) {
    return this.host.exception('AbortError', `the lock '${this.name}' was lost: ${describe(cause)}`, cause);
  }

  /** Aborts when the lock is lost, with the cause. Made when it is first asked for. */
  get lossSignal() {
    this.host.transport.check?.();
    this.#controller ??= new this.host.AbortController();
    const { signal } = this.#controller;
    // A loss by time alone: after a pause the first look comes before the entry is told.
    if (this.loss !== undefined && !signal.aborted) this.#run(this.#abortSignal, this.lossError(this.loss));
    return signal;
  }

  /** Whether the lock is held, as far as this client knows. */
  get isHeld() {
    this.host.transport.check?.();
    return this.state === HELD && this.loss === undefined;
  }
}

function describe(cause) {
  switch (cause) {
    case 'Stolen':
      return 'another request stole it';
    case 'ForceReleased':
      return 'it was force-released';
    case 'Evicted':
      return 'its client was suspended, and somebody else needed it';
    case 'Suspended':
      return 'its client was suspended';
    case 'ClientEnded':
      return 'its client was ended';
    case 'LeaseLapsed':
      return 'the lock service was out of reach for longer than the lease';
    case 'ServiceGone':
      return 'the lock service that kept it is gone';
    case 'NotReclaimed':
      return 'its service was started again, and the lock could not be claimed there';
    default:
      return `${cause}`;
  }
}

/** A request with a callback, which holds the lock as long as it runs. */
export class CallbackEntry extends Entry {
  constructor(host, scope, options, wait, callback) {
    super(host, scope, options, wait);
    this.callback = callback;
  }

  begin() {
    this.#run(this.host.lock(this));
  }

  miss() {
    this.#run(null);
  }

  /**
   * Invokes the callback, whose result becomes a promise, and releases when that settles.
   * https://w3c.github.io/web-locks/#lock-concept
   */
  async #run(lock) {
    const { callback } = this;
    this.callback = undefined;
    try {
      this.#end(this.succeed, await callback(lock));
    } catch (reason) {
      this.#end(this.fail, reason);
    }
  }

  #end(settle, value) {
    // Step 1. Release the lock.
    this.release();
    // Step 2. Resolve lock's released promise with lock's waiting promise: unless it was lost, and is rejected already or
    // about to be.
    if (this.loss === undefined) this.settle(settle, value);
  }

  settle(settle, value) {
    settle.call(this, value);
  }
}
