// Detects a service that is connected and sends nothing, over a Unix socket. Over TCP the pings of
// the lease detect it.

/** Checks within the limit. After a silent one the service gets a ping, after two the waits end. */
const LOOKS = 3;

export class Silence {
  #interval;
  #wasReceived = false;
  #isPinged = false;

  /** @param patience milliseconds that the service may send nothing while a client waits for it */
  constructor(patience) {
    this.#interval = patience / LOOKS;
  }

  /** The milliseconds between two checks. */
  get interval() {
    return this.#interval;
  }

  /** Notes that a message was received. */
  received() {
    this.#wasReceived = true;
  }

  /** Returns what is due: `ping` the service, `end` all waits, or undefined. */
  look(isWaitedFor) {
    const isSilent = isWaitedFor && !this.#wasReceived;
    const isOver = isSilent && this.#isPinged;
    this.#wasReceived = false;
    this.#isPinged = isSilent && !isOver;
    if (isOver) return 'end';
    return isSilent ? 'ping' : undefined;
  }
}
