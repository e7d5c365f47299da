// A service that is connected and says nothing. Where there is a lease its pings find that out;
// over a Unix socket there is none.

/**
 * How often the service is looked at while its patience lasts: a ping at the second look, the end
 * at the third.
 */
const LOOKS = 3;

export class Silence {
  #interval;
  #isBroken = false;
  #isAsked = false;

  /** @param patience milliseconds that the service may say nothing while something waits for it */
  constructor(patience) {
    this.#interval = patience / LOOKS;
  }

  /** Milliseconds between two looks. */
  get interval() {
    return this.#interval;
  }

  /** The service said something. */
  hear() {
    this.#isBroken = true;
  }

  /** What is to be done now: `ping` the service, `end` the wait of all, or nothing. */
  look(isWaitedFor) {
    const isSilent = isWaitedFor && !this.#isBroken;
    const isOver = isSilent && this.#isAsked;
    this.#isBroken = false;
    this.#isAsked = isSilent && !isOver;
    if (isOver) return 'end';
    return isSilent ? 'ping' : undefined;
  }
}
