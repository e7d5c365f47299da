// A connected service that sends nothing, while a request waits for it.

/** The number of pings against silence. Those that renew a lease are numbered from 1. */
export const SIGN_OF_LIFE = 0;

/** The shortest limit that follows from `unreachableAfter`: a service may be busy for a moment. */
const SILENCE_MS_MIN = 1000;

/** The service gets a ping after half of the limit, and every message breaks the silence. */
export class Keepalive {
  /** The milliseconds that the service may send nothing while a client waits for it. */
  limit;
  /** The last message, ping or beginning of a wait; undefined while no client waits. */
  #since;
  #isPinged = false;

  /** @param unreachableAfter milliseconds that the service may be unreachable */
  constructor(unreachableAfter) {
    this.limit = Math.max(unreachableAfter, SILENCE_MS_MIN);
  }

  /** When elapsed() has an effect. */
  get deadline() {
    return this.#since === undefined ? Infinity : this.#since + this.limit / 2;
  }

  /** Notes that a client begins to wait for the service. */
  begin(now) {
    this.#since ??= now;
  }

  /** Notes a message of the service. */
  received(now) {
    if (this.#since !== undefined) this.#since = now;
    this.#isPinged = false;
  }

  /** Stops counting: the connection broke, or no client waits. */
  stop() {
    this.#since = undefined;
    this.#isPinged = false;
  }

  /** Returns the step that is due, and notes that it was taken: `ping`, `give-up` or undefined. */
  elapsed(now) {
    if (now < this.deadline) return undefined;
    if (this.#isPinged) {
      this.stop();
      return 'give-up';
    }
    this.#since = now;
    this.#isPinged = true;
    return 'ping';
  }
}
