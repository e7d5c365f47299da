// The state of the link between a client and its service: whether it is reached, and since when.

import { describeFailure } from './refusals.js';

export const UP = 'up';
export const DOWN = 'down';
/** The client still retries, and `unreachableAfter` has passed. */
export const GAVE_UP = 'gave-up';
export const REFUSED = 'refused';
/** The page is frozen or cached, and the client does not retry. */
export const SUSPENDED = 'suspended';
export const CLOSED = 'closed';

/** The failure before the end of the first attempt. */
const NO_ANSWER = { code: 'unreachable', message: 'there was no answer yet' };

export class LinkState {
  state = DOWN;
  /** Since when the service is, or was last, out of reach. */
  downSince;
  /** Since when it is, or was last, reached; undefined if it never was. */
  upSince;
  /** The failure of the last attempt. */
  failure;
  /** The failure for which requests are refused at once, if any. */
  refusal;

  constructor(now) {
    this.downSince = now;
  }

  get isUp() {
    return this.state === UP;
  }

  get isDown() {
    return this.state === DOWN;
  }

  /** Whether the session has ended for ever. */
  get isOver() {
    return this.state === CLOSED || this.state === REFUSED;
  }

  /** The current outage of the service, if any: { ms, failure }. */
  outage(now) {
    if (this.isUp || this.state === CLOSED) return undefined;
    return { ms: now - this.downSince, failure: describeFailure(this.failure ?? NO_ANSWER) };
  }

  become(state, now) {
    if (this.isUp && state === DOWN) this.downSince = now;
    this.state = state;
    if (state !== UP) return;
    this.failure = undefined;
    this.refusal = undefined;
    this.upSince = now;
  }
}
