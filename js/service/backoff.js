// The pauses between attempts to reach a service.

/** The first pause after a failed attempt. */
const PAUSE_MS_MIN = 10;

/** The longest pause. */
const PAUSE_MS_MAX = 1000;

/** While a cluster chooses another owner of the locks. */
const TAKEOVER_MS_MAX = 200;

/** No pause before the first attempt, then longer and longer ones. */
export class Backoff {
  #max;
  #min;
  #next = 0;

  /**
   * @param max the longest pause in milliseconds
   * @param min the first pause after a failed attempt
   */
  constructor(max = PAUSE_MS_MAX, min = PAUSE_MS_MIN) {
    this.#max = max;
    this.#min = min;
  }

  /** Returns the milliseconds before the next attempt, and doubles the pause. */
  nextPause() {
    const pause = this.#next;
    this.#next = Math.min(Math.max(pause * 2, this.#min), this.#max);
    return pause;
  }

  /**
   * As nextPause(), for a client that the next owner of its locks waits for: shorter, and different
   * from client to client.
   */
  nextInTakeover(random) {
    const half = Math.min(this.nextPause(), TAKEOVER_MS_MAX) / 2;
    return half + half * random;
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
