// In which order and when entries are told: each in a turn of its own.
//
// A turn begins when all promise jobs that were ready are done, as a task of the HTML event loop does: what is asked and
// aborted in one go never runs, and between two callbacks everything that awaits goes on.

import { dropFirst } from './lists.js';

export class Deliveries {
  /** Entries with what to tell them, [tell, entry, value] one after the other. */
  #queue = [];
  #next = 0;
  #arrange;
  /** Whether a turn is under way that can be had. */
  #open = false;

  /** @param createTurns is given a function, and returns another one that arranges for the first to be called in a new turn */
  constructor(createTurns) {
    this.#arrange = createTurns(() => this.#turn());
  }

  add(tell, entry, value) {
    const queue = this.#queue;
    const at = queue.length;
    queue[at] = tell;
    queue[at + 1] = entry;
    queue[at + 2] = value;
    if (at === 0 && !this.#open) this.#arrange();
  }

  /** Does some work that has a turn of its own: the first whom that tells something hears it in the same turn. */
  within(work, given) {
    this.#open = this.#queue.length === 0;
    try {
      work(given);
    } finally {
      const mine = this.#open && this.#queue.length > 0;
      this.#open = false;
      if (mine) this.#turn();
    }
  }

  #turn() {
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
  }

  /** Lets go of what was told, now and then, so that it costs nothing on the whole. */
  #forget() {
    if (this.#next > 3000 && this.#next * 2 > this.#queue.length) {
      dropFirst(this.#queue, this.#next);
      this.#next = 0;
    }
  }
}
