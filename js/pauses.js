// How long to wait before another attempt.

const PAUSE_MS_MIN = 10;

/** Not at all before the first attempt, then longer and longer. */
export class Pauses {
  #max;
  #next = 0;

  /** @param max the longest pause in milliseconds */
  constructor(max) {
    this.#max = max;
  }

  /** Milliseconds before the next attempt. */
  next() {
    const pause = this.#next;
    this.#next = Math.min(Math.max(pause * 2, PAUSE_MS_MIN), this.#max);
    return pause;
  }

  /** The next attempt is made at once. */
  restart() {
    this.#next = 0;
  }

  /** A connection lasted for so many milliseconds. One that broke off at once is no reason to hurry. */
  after(lasted) {
    if (lasted >= this.#max) this.restart();
  }
}
