// Elections by locks: a candidate is a request, the leader its holder, the term its fencing token.
// The value of a candidate is the tag of its request, so every query and dashboard shows it.

// Not every browser has these yet.
const DISPOSE = Symbol.dispose ?? Symbol('dispose');
const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol('asyncDispose');

/** The leadership of one candidate, until it resigns or loses it. */
export class Leadership {
  #lock;
  #value;

  constructor(lock, value) {
    this.#lock = lock;
    this.#value = value;
  }

  /** The number of the term, larger than that of every leader before: the fencing token. */
  get term() {
    return this.#lock.fencingToken;
  }

  /** The value of this candidate. */
  get value() {
    return this.#value;
  }

  /** Whether this client leads. Reads the clock, in case the lease has ended. */
  get held() {
    return this.#lock.held;
  }

  /** Aborts when the leadership is lost. Its reason is an AbortError with the loss as `cause`. */
  get signal() {
    return this.#lock.signal;
  }

  /** Resolves with the cause when the leadership is lost, and never after a resignation. */
  lost() {
    const { signal } = this;
    return new Promise((resolve) => {
      const tell = () => resolve(signal.reason.cause);
      if (signal.aborted) tell();
      else signal.addEventListener('abort', tell, { once: true });
    });
  }

  /** Ends the leadership, so that the next candidate is elected. True if it had not ended. */
  resign() {
    return this.#lock.release();
  }

  [DISPOSE]() {
    this.resign();
  }

  async [ASYNC_DISPOSE]() {
    this.resign();
  }
}

/**
 * The leaders of a name: an async iterator over the present one and each change, with null while
 * there is none. Terms only grow.
 */
export class Leaders {
  #locks;
  #name;
  #events;
  /** The last answer; undefined before the first. */
  #seen;
  /** Events are missing, so the lock space is asked. */
  #asks = true;
  #turn = Promise.resolve();

  constructor(locks, name) {
    this.#locks = locks;
    this.#name = name;
    this.#events = locks.events();
  }

  /** Resolves with the present leader at first, then with each change. */
  next() {
    const result = this.#turn.then(() => this.#read());
    this.#turn = result.catch(() => {});
    return result;
  }

  /** Ends the iterator, and a pending `next()`. */
  async return(value) {
    this.#asks = false;
    await this.#events.return();
    return { done: true, value };
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  async #read() {
    for (;;) {
      let changed = false;
      if (this.#asks) {
        const { held } = await this.#locks.inspect();
        this.#asks = false;
        const lock = held.find((each) => this.#isLeader(each));
        changed = this.#change(lock ?? null);
      } else {
        const { done, value: event } = await this.#events.next();
        if (done) return { done, value: undefined };
        changed = this.#receive(event);
      }
      if (changed) return { done: false, value: this.#seen };
    }
  }

  #isLeader({ scope, mode, limit }) {
    return scope.length === 1 && scope[0] === this.#name && mode === 'exclusive' && limit === undefined;
  }

  /** Returns whether an event changes the leader. */
  #receive(event) {
    const ends = ['released', 'lost', 'downgraded'].includes(event.type);
    if (event.type === 'gap') this.#asks = true;
    else if (event.type === 'granted' && this.#isLeader(event)) return this.#change(event);
    else if (ends && this.#seen?.id === event.id) return this.#change(null);
    return false;
  }

  /** Notes the present leader. Returns whether it is another one than before. */
  #change(lock) {
    if (lock === null ? this.#seen === null : lock.fencingToken <= this.#seen?.term) return false;
    const { id, fencingToken: term, tag: value = '', clientId, pid } = lock ?? {};
    this.#seen = lock && Object.freeze({ term, value, clientId, pid, id });
    return true;
  }
}
