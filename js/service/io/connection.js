// The state of the connection to a service, for programs.

import { nameClass } from '../../standard/locks.js';

/** The state of a connection. Fires `change` in a task of its own when the state changes. */
export class LockConnection extends EventTarget {
  #state = 'connecting';
  #since = Date.now();
  #error;
  /** Returns { length, left } of the session's lease in milliseconds, if it has one. */
  #lease;

  constructor(lease) {
    super();
    this.#lease = lease;
  }

  /** `connecting`, `connected`, `unreachable`, `suspended`, `refused` or `closed`. */
  get state() {
    return this.#state;
  }

  /** The time of the last change of state: milliseconds since 1970. */
  get since() {
    return this.#since;
  }

  /** The reason why it is not connected, if so. */
  get error() {
    return this.#error;
  }

  /**
   * The milliseconds for which the service keeps the locks without a connection; undefined over a
   * Unix socket.
   */
  get lease() {
    return this.#lease()?.length;
  }

  /** The milliseconds until the locks count as lost, unless the service answers before. */
  get leaseLeft() {
    const lease = this.#lease();
    return lease === undefined ? undefined : Math.max(lease.left, 0);
  }

  // ---- for sessions

  /** Sets the state. Returns a function that fires `change`, if the state is another one. */
  change(state, error) {
    this.#error = error;
    if (state === this.#state) return undefined;
    this.#state = state;
    this.#since = Date.now();
    return () => this.dispatchEvent(new Event('change'));
  }
}

nameClass(LockConnection, 'LockConnection');
