// The client's side of a lease: how long its locks stay held without an answer of the service.

import { append, dropFirst } from '../internal/lists.js';

/**
 * A lease that runs from the moment when the client sent the last answered message.
 *
 * The service counts from the receipt of that message, which is later. The client also stops an
 * eighth earlier, so it loses its locks before other requests are granted.
 */
export class Lease {
  /** The milliseconds for which the service keeps the locks. */
  length;
  #sentAt;
  /** When the last message was sent whose answer extends the lease. */
  #askedAt;
  /** Pings without an answer, { number, sentAt } in order. */
  #pings = [];
  #next = 1;

  /** @param sentAt when the message was sent that the service answered with this lease */
  constructor(length, sentAt) {
    this.length = length;
    this.#sentAt = this.#askedAt = sentAt;
  }

  /**
   * When the next ping is due: when a quarter of the belief is used, counted from the last sent
   * message. So more than 5/8 of the lease are left when a connection breaks, if a ping is answered
   * within 1/32 of it.
   */
  get pingAt() {
    return this.#askedAt + (this.length - this.length / 8) / 4;
  }

  /** Until when the client may take its locks for held. */
  get until() {
    return this.#sentAt + this.length - this.length / 8;
  }

  /**
   * When the connection counts as dead: after half of the lease without an answer. The rest of the
   * lease is for another connection to resume the session.
   */
  get silentFrom() {
    if (this.#pings.length === 0) return Infinity;
    return Math.max(this.#pings[0].sentAt + this.length / 4, this.#sentAt + this.length / 2);
  }

  /** Returns the number of a ping that is about to be sent. */
  ping(now) {
    this.#askedAt = now;
    append(this.#pings, { number: this.#next, sentAt: now });
    return this.#next++;
  }

  /** Extends the lease: the service answered this ping and thereby all earlier ones. */
  pong(number) {
    let answered = 0;
    while (answered < this.#pings.length && this.#pings[answered].number <= number) this.#sentAt = this.#pings[answered++].sentAt;
    dropFirst(this.#pings, answered);
  }
}
