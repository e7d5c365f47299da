// Maximum holds: until when a client may take a lock for held, by its own clock.
//
// The service counts from the grant. The client cannot know that moment, only that the request
// waited for so long before it, and counts from when it sent the request, which is earlier. So the
// client knows the end before any other client can be granted, also without a connection.

import { KeptMap } from '../../internal/collections.js';
import { each } from '../../internal/lists.js';

/**
 * Two clocks differ by less than this part of a duration. A clock that is corrected step by step
 * gains or loses half of it at most.
 */
const DRIFT_PART = 1000;

const shortened = (ms, isFar) => (isFar ? ms - ms / DRIFT_PART : ms);

/** Returns the earliest grant of a request that was sent at this moment and waited for so long. */
export const earliestGrant = (sentAt, waited, isFar) => sentAt + shortened(waited, isFar);

/** Returns until when a lock is held that was granted at this moment at the earliest. */
export const holdDeadline = (grantedAt, maxHold, isFar) => grantedAt + shortened(maxHold, isFar);

/** The locks with a maximum hold. */
export class Holds {
  /** Deadlines by the number of a request. */
  #until = new KeptMap();
  /** A heap of { until, id }. Locks that ended before stay in it until they are half of it. */
  #heap = [];

  /** When the time of the next lock is over. */
  get deadline() {
    this.#dropEnded();
    return this.#heap[0]?.until ?? Infinity;
  }

  begin(id, until) {
    this.#until.set(id, until);
    this.#push({ until, id });
  }

  end(id) {
    if (!this.#until.delete(id) || this.#heap.length < 2 * this.#until.size + 16) return;
    const heap = this.#heap;
    this.#heap = [];
    each(heap, (item) => {
      if (this.#isLive(item)) this.#push(item);
    });
  }

  /** Returns a lock whose time is over, if there is one. */
  due(now) {
    return this.deadline <= now ? this.#heap[0].id : undefined;
  }

  #isLive({ until, id }) {
    return this.#until.get(id) === until;
  }

  #dropEnded() {
    while (this.#heap.length > 0 && !this.#isLive(this.#heap[0])) this.#pop();
  }

  #push(item) {
    const heap = this.#heap;
    let at = heap.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (heap[above].until <= item.until) break;
      heap[at] = heap[above];
      at = above;
    }
    heap[at] = item;
  }

  #pop() {
    const heap = this.#heap;
    const item = heap[heap.length - 1];
    heap.length--;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below + 1 < heap.length && heap[below + 1].until < heap[below].until) below++;
      if (below >= heap.length || heap[below].until >= item.until) break;
      heap[at] = heap[below];
      at = below;
    }
    heap[at] = item;
  }
}
