// One timer of the platform, which can be set again.

/** The longest delay that setTimeout takes. */
const DELAY_MS_MAX = 2 ** 31 - 1;

export class Timer {
  #platform;
  #handle;

  constructor(platform) {
    this.#platform = platform;
  }

  /** Runs `work` after so many milliseconds, instead of the work that was set before. */
  set(milliseconds, work) {
    this.clear();
    const delay = Math.min(Math.max(Math.ceil(milliseconds), 0), DELAY_MS_MAX);
    this.#handle = this.#platform.setTimeout(() => {
      this.#handle = undefined;
      work();
    }, delay);
  }

  get isSet() {
    return this.#handle !== undefined;
  }

  clear() {
    if (this.#handle !== undefined) this.#platform.clearTimeout(this.#handle);
    this.#handle = undefined;
  }
}
