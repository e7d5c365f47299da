// The state of the connection to a service, for programs.

import { nameClass } from './locks.js';

/** The state of a connection. Fires `change` when it has another one, in a task of its own. */
export class LockConnection extends EventTarget {
  #state = 'connecting';
  #since = Date.now();
  #error;
  /** Asks the session: { length, left } of the lease in milliseconds, if there is one. */
  #lease;

  constructor(lease) {
    super();
    this.#lease = lease;
  }

  /** `connecting`, `connected`, `unreachable`, `suspended`, `refused` or `closed`. */
  get state() {
    return this.#state;
  }

  /** Since when: milliseconds since 1970. */
  get since() {
    return this.#since;
  }

  /** Why it is not connected, if so. */
  get error() {
    return this.#error;
  }

  /**
   * For how many milliseconds the service keeps the locks without a connection; undefined over a
   * Unix socket.
   */
  get lease() {
    return this.#lease()?.length;
  }

  /**
   * How many milliseconds are left until the locks count as lost, unless the service is heard from.
   */
  get leaseLeft() {
    const lease = this.#lease();
    return lease === undefined ? undefined : Math.max(lease.left, 0);
  }

  // ---- for sessions

  /** Takes another state; returns how to tell, if it is another one. */
  change(state, error) {
    this.#error = error;
    if (state === this.#state) return undefined;
    this.#state = state;
    this.#since = Date.now();
    return () => this.dispatchEvent(new Event('change'));
  }
}

nameClass(LockConnection, 'LockConnection');
