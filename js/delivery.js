// In which order and when entries are told: each in a turn of its own.
//
// A turn begins when all promise jobs that were ready are done, as a task of the HTML event loop does: what is asked and
// aborted in one go never runs, and between two callbacks everything that awaits goes on. It costs a tenth of a
// turn of Node's event loop; one in many takes that, so that timers and I/O never starve.

import { setImmediate } from 'node:timers';

const { nextTick } = process;

/** How many turns may pass before the event loop gets one. */
const STREAK_MAX = 64;

export class Deliveries {
  /** Entries with what to tell them, [tell, entry, value] one after the other. */
  #queue = [];
  #next = 0;
  #streak = 0;

  add(tell, entry, value) {
    if (this.#queue.push(tell, entry, value) === 3) this.#arrange();
  }

  #arrange() {
    if (++this.#streak < STREAK_MAX) {
      queueMicrotask(this.#tick);
    } else {
      this.#streak = 0;
      setImmediate(this.#turn);
    }
  }

  // Asked for among promise jobs, a tick comes after the last of them.
  #tick = () => nextTick(this.#turn);

  #turn = () => {
    const queue = this.#queue;
    const at = this.#next;
    const tell = queue[at];
    const entry = queue[at + 1];
    const value = queue[at + 2];
    if (at + 3 === queue.length) {
      queue.length = 0;
      this.#next = 0;
    } else {
      this.#next = at + 3;
      this.#forget();
      this.#arrange();
    }
    tell(entry, value);
  };

  /** Lets go of what was told, now and then, so that it costs nothing on the whole. */
  #forget() {
    if (this.#next > 3000 && this.#next * 2 > this.#queue.length) {
      this.#queue.splice(0, this.#next);
      this.#next = 0;
    }
  }
}
