// The pauses between attempts: an exponential back-off.

const PAUSE_MS_MIN = 10;

/** An exponential back-off with no pause before the first attempt. */
export class Pauses {
  #max;
  #next = 0;

  /** @param max the longest pause in milliseconds */
  constructor(max) {
    this.#max = max;
  }

  /** Returns the milliseconds before the next attempt, and doubles the pause. */
  next() {
    const pause = this.#next;
    this.#next = Math.min(Math.max(pause * 2, PAUSE_MS_MIN), this.#max);
    return pause;
  }

  /** Makes the next pause zero. */
  restart() {
    this.#next = 0;
  }

  /** Restarts after a connection that lasted for at least the longest pause, in milliseconds. */
  after(lasted) {
    if (lasted >= this.#max) this.restart();
  }
}
