// Delivers outcomes to entries in order, each in a turn of its own.
//
// A turn begins after all ready promise jobs, like a task of the HTML event loop. So a request that
// is aborted in the same task never runs its callback.

import { dropFirst } from './lists.js';

export class Deliveries {
  /** Deliveries in order, three elements each: function, entry, value. */
  #queue = [];
  #next = 0;
  #schedule;
  /** Whether the current turn may be used for the first delivery. */
  #isTurnFree = false;

  /** @param createTurns takes a function, and returns one that schedules its call in a new turn */
  constructor(createTurns) {
    this.#schedule = createTurns(() => this.#deliverNext());
  }

  add(deliver, entry, value) {
    const queue = this.#queue;
    const at = queue.length;
    queue[at] = deliver;
    queue[at + 1] = entry;
    queue[at + 2] = value;
    if (at === 0 && !this.#isTurnFree) this.#schedule();
  }

  /** Runs `work`, which has a turn of its own. Its first delivery uses the same turn. */
  within(work, given) {
    this.#isTurnFree = this.#queue.length === 0;
    try {
      work(given);
    } finally {
      const isFirst = this.#isTurnFree && this.#queue.length > 0;
      this.#isTurnFree = false;
      if (isFirst) this.#deliverNext();
    }
  }

  #deliverNext() {
    const queue = this.#queue;
    const at = this.#next;
    const deliver = queue[at];
    const entry = queue[at + 1];
    const value = queue[at + 2];
    if (at + 3 === queue.length) {
      queue.length = 0;
      this.#next = 0;
    } else {
      this.#next = at + 3;
      this.#dropDelivered();
      this.#schedule();
    }
    deliver(entry, value);
  }

  /** Drops delivered elements once they are most of the queue, at constant amortised cost. */
  #dropDelivered() {
    if (this.#next > 3000 && this.#next * 2 > this.#queue.length) {
      dropFirst(this.#queue, this.#next);
      this.#next = 0;
    }
  }
}
