// The client's side of a lease: how long its locks stay held without an answer of the service.

import { append, dropFirst } from './lists.js';

// Read now: fake timers of a test runner replace the clocks, and a lease needs the real ones.
const wallNow = Date.now;
const steadyNow = performance.now.bind(performance);

/**
 * A moment by two clocks. The steady clock may stop while the machine sleeps, and the wall clock
 * can be set, so the larger difference counts.
 */
export class Moment {
  #steady = steadyNow();
  #wall = wallNow();

  /** The milliseconds since this moment. */
  get age() {
    return Math.max(steadyNow() - this.#steady, wallNow() - this.#wall);
  }
}

/**
 * A lease that runs from the moment when the client sent the last answered message.
 *
 * The service counts from the receipt of that message, which is later. The client also stops an
 * eighth earlier, so it loses its locks before other requests are granted.
 */
export class Lease {
  #length;
  #sentAt;
  /** Pings without an answer, { number, sentAt } in order. */
  #pings = [];
  #next = 1;

  /** @param sentAt when the message was sent that the service answered with this lease */
  constructor(length, sentAt) {
    this.#length = length;
    this.#sentAt = sentAt;
  }

  /** The milliseconds for which the service keeps the locks. */
  get length() {
    return this.#length;
  }

  /** The milliseconds that are left; zero or less when the locks are lost. */
  get left() {
    return this.#length - this.#length / 8 - this.#sentAt.age;
  }

  /**
   * The milliseconds until the connection counts as dead: after half of the lease without an
   * answer. The rest of the lease is for another connection to resume the session.
   */
  get silentIn() {
    if (this.#pings.length === 0) return Infinity;
    return Math.max(this.#length / 4 - this.#pings[0].sentAt.age, this.#length / 2 - this.#sentAt.age);
  }

  /** The milliseconds between pings: several may get lost before the lease ends. */
  get pingInterval() {
    return this.#length / 4;
  }

  /** Notes that a ping is sent now. Returns its number. */
  ping() {
    const number = this.#next++;
    append(this.#pings, { number, sentAt: new Moment() });
    return number;
  }

  /** Extends the lease: the service answered this ping and thereby all earlier ones. */
  pong(number) {
    let answered = 0;
    while (answered < this.#pings.length && this.#pings[answered].number <= number) this.#sentAt = this.#pings[answered++].sentAt;
    dropFirst(this.#pings, answered);
  }
}
