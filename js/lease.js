// For how long a client may believe in its locks without hearing from the service.

import { append, dropFirst } from './lists.js';

// Taken now: fake timers of a test runner replace the clocks, and a lease goes by the real ones.
const wallNow = Date.now;
const steadyNow = performance.now.bind(performance);

/**
 * A moment by two clocks. One stands still in some browsers while the machine sleeps, the other one can be set; the larger
 * difference is never less than the time that passed, unless the clock was set back during a sleep.
 */
export class Moment {
  #steady = steadyNow();
  #wall = wallNow();

  /** How many milliseconds ago it was. */
  get age() {
    return Math.max(steadyNow() - this.#steady, wallNow() - this.#wall);
  }
}

/**
 * The client's side of a lease.
 *
 * The service counts from when it last heard of the client; the client from when it said the last thing that was answered,
 * which is earlier, and it stops believing an eighth before the end, for clocks that do not run alike. So the client knows
 * before anybody else can be granted.
 */
export class Lease {
  #length;
  #said;
  /** Pings that are under way, { number, said } in order. */
  #pings = [];
  #next = 1;

  /** @param said when that was said to which the lease is the answer */
  constructor(length, said) {
    this.#length = length;
    this.#said = said;
  }

  /** How many milliseconds the service keeps the locks. */
  get length() {
    return this.#length;
  }

  /** When that was said which was answered last. */
  get said() {
    return this.#said;
  }

  /** How many milliseconds are left; none when the locks are lost. */
  get left() {
    return this.#length - this.#length / 8 - this.#said.age;
  }

  /**
   * How many milliseconds are left until the connection counts as dead: a ping was not answered for a quarter of the lease, and
   * nothing for half of it. What is left of the lease is for another connection to go on with the session.
   */
  get silentIn() {
    if (this.#pings.length === 0) return Infinity;
    return Math.max(this.#length / 4 - this.#pings[0].said.age, this.#length / 2 - this.#said.age);
  }

  /** Several pings may get lost before the lease is in danger. */
  get pingInterval() {
    return this.#length / 4;
  }

  /** The number of a ping that is about to be sent. */
  ping() {
    const number = this.#next++;
    append(this.#pings, { number, said: new Moment() });
    return number;
  }

  /** The service answered the ping with this number, and thereby all before it. */
  pong(number) {
    let answered = 0;
    while (answered < this.#pings.length && this.#pings[answered].number <= number) this.#said = this.#pings[answered++].said;
    dropFirst(this.#pings, answered);
  }
}
