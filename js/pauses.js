// The pauses between attempts: an exponential back-off.

/** The first pause after a failed attempt. */
const PAUSE_MS_MIN = 10;

/** While a cluster chooses another owner of the locks. */
const TAKEOVER_MS_MAX = 200;

/** Not at all before the first attempt, then longer and longer. */
export class Pauses {
  #max;
  #min;
  #next = 0;

  /**
   * @param max the longest pause in milliseconds
   * @param min the first pause after a failed attempt
   */
  constructor(max, min = PAUSE_MS_MIN) {
    this.#max = max;
    this.#min = min;
  }

  /** Returns the milliseconds before the next attempt, and doubles the pause. */
  next() {
    const pause = this.#next;
    this.#next = Math.min(Math.max(pause * 2, this.#min), this.#max);
    return pause;
  }

  /**
   * As next(), for a client that the next owner of its locks waits for. The pause differs from
   * client to client.
   */
  nextInTakeover() {
    const half = Math.min(this.next(), TAKEOVER_MS_MAX) / 2;
    return half + half * Math.random();
  }

  /** The next attempt is made at once. */
  restart() {
    this.#next = 0;
  }

  /**
   * A connection lasted for so many milliseconds. One that broke off at once is no reason to hurry:
   * then returns false.
   */
  after(lasted) {
    if (lasted < this.#max) return false;
    this.restart();
    return true;
  }
}
