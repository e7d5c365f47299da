// The event stream of a lock space: what happens to its requests, in order, for one reader.

import { append, dropFirst } from './lists.js';

/** Events that a stream keeps for a slow reader, unless it is told otherwise. */
export const CAPACITY = 4096;

/** How many events that were read are kept before the list is cut. */
const READ_MAX = 1024;

/** What the iterator answers when no event will come any more. */
const DONE = Object.freeze({ done: true, value: undefined });

/**
 * An async iterator. A transport fills it by push(), end() and fail(); events that are not read
 * wait here, and the oldest make room for later ones.
 */
export class LockEvents {
  #events = [];
  /** The index of the next event to be read. */
  #next = 0;
  /** How many events were dropped since the reader last learned of that. */
  #missed = 0;
  #capacity;
  /** Readers that wait, { resolve, reject }, in the order of their calls. */
  #readers = [];
  #isOver = false;
  /** Why the stream ended, for one reader. */
  #failure;
  #transport;

  /** How many events the stream keeps. */
  get capacity() {
    return this.#capacity;
  }

  constructor(transport, capacity) {
    this.#transport = transport;
    this.#capacity = capacity;
  }

  /** The next event; `done` when none will come any more. */
  next() {
    return new Promise((resolve, reject) => {
      const event = this.#take();
      if (event !== undefined) resolve({ done: false, value: event });
      else if (!this.#isOver) this.#wait({ resolve, reject });
      else this.#answerLast({ resolve, reject });
    });
  }

  /** Ends the stream. Events that were not read are dropped. */
  async return(value) {
    if (!this.#isOver) this.#transport.unsubscribe(this);
    this.#events = [];
    this.#next = 0;
    this.#missed = 0;
    this.end();
    return { done: true, value };
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  // ---- for transports

  push(event) {
    const [reader] = this.#readers;
    if (reader !== undefined) {
      dropFirst(this.#readers, 1);
      this.#transport.keepAlive(-1);
      reader.resolve({ done: false, value: event });
      return;
    }
    append(this.#events, event);
    const over = this.#events.length - this.#next - this.#capacity;
    if (over <= 0) return;
    // Dropped with a part of the rest, so that the list is cut now and then and not each time.
    this.#next += over;
    this.#missed += over;
    this.#cut();
  }

  /** Events before the next one are missing: so many, or an unknown number. */
  pushGap(missed) {
    this.push({ type: 'gap', missed, time: Date.now() });
  }

  end() {
    this.#isOver = true;
    const readers = this.#readers;
    this.#readers = [];
    if (readers.length > 0) this.#transport.keepAlive(-readers.length);
    for (let index = 0; index < readers.length; index++) this.#answerLast(readers[index]);
  }

  fail(error) {
    if (this.#isOver) return;
    this.#failure = error;
    this.end();
  }

  #take() {
    if (this.#missed > 0) {
      const missed = this.#missed;
      this.#missed = 0;
      return { type: 'gap', missed, time: Date.now() };
    }
    if (this.#next === this.#events.length) return undefined;
    const event = this.#events[this.#next];
    this.#events[this.#next++] = undefined;
    this.#cut();
    return event;
  }

  #cut() {
    if (this.#next < READ_MAX && this.#next < this.#events.length) return;
    dropFirst(this.#events, this.#next);
    this.#next = 0;
  }

  #wait(reader) {
    append(this.#readers, reader);
    // A program that does nothing but read events goes on.
    this.#transport.keepAlive(1);
  }

  #answerLast({ resolve, reject }) {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure === undefined) resolve(DONE);
    else reject(failure);
  }
}
