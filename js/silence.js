// Detects a service that is connected and sends nothing.

import { Moment } from './lease.js';

/** The shortest limit that follows from a patience: a service may be busy for a moment. */
const SILENCE_MS_MIN = 1000;

/** While a client waits, the service gets a ping after half of the limit. */
export class Silence {
  #half;
  /** The last message, ping or beginning of a wait; undefined while no client waits. */
  #since;
  #isPinged = false;

  /** @param patience milliseconds that the service may be unreachable */
  constructor(patience) {
    this.#half = Math.max(patience, SILENCE_MS_MIN) / 2;
  }

  /** The milliseconds that the service may send nothing while a client waits for it. */
  get limit() {
    return this.#half * 2;
  }

  /** The milliseconds until look() is due. */
  get dueIn() {
    return this.#since === undefined ? Infinity : this.#half - this.#since.age;
  }

  /** Notes that a client waits for the service. Returns whether it is the first one. */
  begin() {
    if (this.#since !== undefined) return false;
    this.restart();
    return true;
  }

  restart() {
    this.#since = new Moment();
    this.#isPinged = false;
  }

  /** Notes that a message was received. */
  received() {
    if (this.#since !== undefined) this.restart();
  }

  /** Returns what is due: `ping` the service, `end` all waits, or undefined. */
  look(isWaitedFor) {
    if (this.dueIn > 0) return undefined;
    const isOver = this.#isPinged;
    this.#since = isWaitedFor && !isOver ? new Moment() : undefined;
    this.#isPinged = true;
    if (!isWaitedFor) return undefined;
    return isOver ? 'end' : 'ping';
  }
}
