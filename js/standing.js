// The standing of a session: whether its service is reached, since when, and why not.

import { LockConnection } from './connection.js';
import { Moment } from './lease.js';
import { describeFailure } from './refusals.js';

export const UP = 'up';
export const DOWN = 'down';
/** The client still retries, and its patience has ended. */
export const HOPELESS = 'hopeless';
export const REFUSED = 'refused';
/** The page is frozen or cached, and the client does not retry. */
export const ASLEEP = 'asleep';
export const CLOSED = 'closed';

/** The states of `locks.connection`. */
const STATES = {
  [UP]: 'connected',
  [DOWN]: 'unreachable',
  [HOPELESS]: 'unreachable',
  [REFUSED]: 'refused',
  [ASLEEP]: 'suspended',
  [CLOSED]: 'closed',
};

/** The failure before the end of the first attempt. */
const NO_ANSWER = { code: 'unreachable', message: 'there was no answer yet' };

export class Standing {
  /** For programs. */
  connection;
  #platform;
  #state = DOWN;
  #downSince = new Moment();
  #upSince;
  /** The failure of the last attempt. */
  failure;
  /** The failure for which requests are refused at once, if any. */
  refusal;

  /** @param lease returns the lease of the session, if it has one */
  constructor(lease, platform) {
    this.connection = new LockConnection(lease);
    this.#platform = platform;
  }

  get isUp() {
    return this.#state === UP;
  }

  get isDown() {
    return this.#state === DOWN;
  }

  get isAsleep() {
    return this.#state === ASLEEP;
  }

  get isClosed() {
    return this.#state === CLOSED;
  }

  /** Whether the session has ended for ever. */
  get isOver() {
    return this.#state === CLOSED || this.#state === REFUSED;
  }

  /** Whether the service was ever reached. */
  get wasUp() {
    return this.#upSince !== undefined;
  }

  /** For how many milliseconds the service has been, or was last, out of reach. */
  get downFor() {
    return this.#downSince.age;
  }

  /** For how many milliseconds the connection has lasted. */
  get upFor() {
    return this.#upSince.age;
  }

  /** The current outage of the service, if any: { ms, failure }. */
  get outage() {
    if (this.isUp || this.isClosed) return undefined;
    return { ms: this.downFor, failure: describeFailure(this.failure ?? NO_ANSWER) };
  }

  /** Counts the outage from now on. */
  beginOutage() {
    this.#downSince = new Moment();
  }

  /** Changes the state. Notifies listeners of the connection if programs have it already. */
  become(state, failure, isShown) {
    if (this.isUp && state === DOWN) this.beginOutage();
    this.#state = state;
    if (state === UP) {
      this.failure = undefined;
      this.refusal = undefined;
      this.#upSince = new Moment();
    }
    const notify = this.connection.change(STATES[state], failure && this.error(failure));
    if (notify !== undefined && isShown) this.#platform.deliveries.add(notify);
  }

  error(failure) {
    const { name, message, cause } = describeFailure(failure);
    return this.#platform.exception(name, message, cause);
  }
}
