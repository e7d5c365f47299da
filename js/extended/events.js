// The event stream of a lock space for one subscriber, in engine order.

import { append, dropFirst } from '../internal/lists.js';

/** Unread events that a stream keeps by default. */
export const CAPACITY = 4096;

/** Read events that stay in the list before it is cut. */
const READ_MAX = 1024;

/** The result of the iterator after the last event. */
const DONE = Object.freeze({ done: true, value: undefined });

/**
 * An async iterator over events. A transport fills it by push(), end() and fail(); beyond its
 * capacity the stream drops the oldest unread events.
 */
export class LockEvents {
  #events = [];
  /** The index of the next event to be read. */
  #next = 0;
  /** Events dropped since the last `gap`. */
  #missed = 0;
  #capacity;
  /** Pending calls of next(), { resolve, reject }, in order. */
  #readers = [];
  #isOver = false;
  /** The error that ended the stream, until a reader got it. */
  #failure;
  #transport;

  /** The number of unread events that the stream keeps. */
  get capacity() {
    return this.#capacity;
  }

  constructor(transport, capacity) {
    this.#transport = transport;
    this.#capacity = capacity;
  }

  /** Resolves with the next event, or with `done` after the end of the stream. */
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
    // Skips the oldest events; #cut() removes them later, many at once.
    this.#next += over;
    this.#missed += over;
    this.#cut();
  }

  /** Adds an event for missing ones: their number, or undefined if it is unknown. */
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
    // A program that only reads events must not end.
    this.#transport.keepAlive(1);
  }

  #answerLast({ resolve, reject }) {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure === undefined) resolve(DONE);
    else reject(failure);
  }
}
