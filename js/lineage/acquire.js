// acquire, forceRelease and query, as the draft of December 2017 has them.

import { CallbackEntry, PENDING, WAIT } from '../standard/entry.js';
import { mapped } from '../internal/lists.js';
import { addAbortAlgorithm } from '../standard/signals.js';

/** A request of that draft: after the grant its signal rejects the promise and keeps the lock. */
class AcquireEntry extends CallbackEntry {
  #watch;
  #signal;

  constructor(host, name, options, wait, callback) {
    super(host, name, { ...options, signal: undefined }, wait, callback);
    this.#signal = options.signal;
  }

  submit() {
    if (this.#signal !== undefined && !this.#signal.aborted) {
      const algorithm = { cancel: () => this.#abort() };
      this.#watch = { algorithm, watch: addAbortAlgorithm(this.#signal, algorithm, this.host.listen) };
    }
    return super.submit();
  }

  #abort() {
    // The promise rejects even if the lock stays held.
    const error = this.host.exception('AbortError', `the request for '${this.name}' was aborted`);
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

  /** Settles the promise after the queue was processed and the callbacks of new holders began. */
  settle(settle, value) {
    this.host.transport.task(() => settle.call(this, value));
  }
}

/** @param environment as environmentOf() returns it */
export function createAcquire({ host: given, interfaces: { internals } }) {
  const { Promise, TypeError, convert, checkEnvironment, createStandardLock } = internals;
  // A lock of that draft has a name and a mode, like the standard's.
  const host = { ...given, lock: createStandardLock };

  /** Requests one name. No options exclude each other; a steal also aborts all waiters. */
  function acquire(name, options, callback = undefined) {
    try {
      if (arguments.length < 2) throw new TypeError('acquire() needs a name and a callback');
      const converted = convert.domString(name, 'the name');
      const three = arguments.length > 2;
      const settings = convert.lockOptions(three ? options : undefined, false);
      const work = convert.callback(three ? callback : options);
      checkEnvironment(host);
      const wait = settings.steal ? WAIT.stealAll : settings.ifAvailable ? WAIT.ifAvailable : WAIT.queue;
      return new AcquireEntry(host, converted, settings, wait, work).submit();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Releases all locks held on a name, in one step. Their promises reject with an AbortError. */
  function forceRelease(name) {
    if (arguments.length === 0) throw new TypeError('forceRelease() needs a name');
    const converted = convert.domString(name, 'the name');
    checkEnvironment(host);
    ignoreOutcome(host.transport.forceRelease(converted));
  }

  /** Returns name and mode of the held locks, in grant order, and of the pending requests. */
  function query() {
    return new Promise((resolve, reject) => {
      answer(resolve, reject);
    });
  }

  async function answer(resolve, reject) {
    try {
      checkEnvironment(host);
      const { held, pending } = await host.transport.query();
      const info = ({ name, mode }) => ({ name, mode });
      resolve({ held: mapped(held, info), pending: mapped(pending, info) });
    } catch (error) {
      reject(error);
    }
  }

  return { acquire, forceRelease, query };
}

/** Handles a rejection: forceRelease() returns no promise, so its caller cannot. */
async function ignoreOutcome(answer) {
  try {
    await answer;
  } catch {
    // Locks of an unreachable service end with their leases.
  }
}
