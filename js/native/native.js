// The transport within a process, over the native addon or WebAssembly. All threads share its lock
// space.

import { randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers';
import { COUNT, createArray, MAIL, MAIL_LENGTH, MORE, NUMBER } from './array.js';
import { blockersOf, CAUSES, deadlocksOf, detailsOf, eventsOf, limitOf, ownDeadlockOf, snapshotOf } from './columns.js';
import { loadEngine } from './engine.js';
import { NamedEntries } from './entries.js';
import { WeakValues } from '../internal/collections.js';
import { Deliveries } from '../internal/delivery.js';
import { createTurns } from '../internal/turns.js';

/** `problem` is why there is no engine, if so. */
const { engine, problem } = loadEngine();

export { problem };

/** Whether calls are messages to the main thread, see remote.js. */
const isRemote = engine?.settle !== undefined;

// The kinds of mail, as in native/src/mail.rs: the number of a type of event, or a kind of mail
// alone.
const GRANTED = 1;
const UNAVAILABLE = 2;
const LOST = 6;
const CONTENDED = 8;
const EVENTS = 9;

/** The answer to the last call, for all lock spaces: it is read at once. */
const answer = createArray(256);

/**
 * Turns of the event loop that a thread polls before it sleeps: some fifty microseconds. On one
 * processor, polling would only delay the holder.
 */
const POLLS_MAX = availableParallelism() > 1 ? 40 : 0;
/** The largest exponent of the back-off: after n failures in a row 2^n waits are not polled. */
const FAILURES_MAX = 5;

/** The id of this thread in every lock space. */
const clientId = randomUUID();

/** In place of a handle, while the transport has no client in the engine. */
const CLOSED = -1;
/** So many idle clients are kept: opening one costs as much as some requests. */
const IDLE_MAX = 64;

/** The transports of this thread, by partition. */
const transports = new WeakValues();
/** Those that have a client in the engine. */
const opened = new Set();
let sweepAt = IDLE_MAX;

/** Returns the transport of this thread to a lock space. */
export function transportOf(partition) {
  const known = transports.get(partition);
  if (known !== undefined) return known;
  const transport = new NativeTransport(partition);
  transports.set(partition, transport);
  return transport;
}

/** Only a client whose steals are messages must find its own locks by name. */
function createEntries() {
  return isRemote ? new NamedEntries() : new Map();
}

/** Closes idle clients once they may be half of all, at constant amortised cost. */
function sweep() {
  if (opened.size < sweepAt) return;
  for (const transport of opened) transport.closeIfIdle();
  sweepAt = Math.max(IDLE_MAX, 2 * opened.size);
}

class NativeTransport {
  clientId = clientId;
  space;
  #handle = CLOSED;
  /** The number of the last request. */
  #last = 0;
  /** Entries that may get mail, by number. */
  #entries = createEntries();
  /** The number of waiters, which keep the event loop alive. */
  #waiting = 0;
  #deliveries = new Deliveries(createTurns);
  /** Event streams of subscribers. */
  #streams = [];
  /** 1 while this thread polls for mail, so that the engine need not wake it. */
  #polls = 0;
  /** Polls since the last wait began. */
  #polled = 0;
  /** Waits in a row that polling did not end, and waits still to be skipped for it. */
  #failures = 0;
  #skips = 0;

  constructor(partition) {
    this.space = Object.freeze({ origin: undefined, partition });
  }

  /** Opens a client in the engine if there is none. Returns its handle. */
  #open() {
    if (this.#handle !== CLOSED) return this.#handle;
    sweep();
    const wake = () => {
      if (this.#handle === CLOSED) return;
      engine.take(this.#handle, this.#polls);
      this.#deliverMail();
    };
    this.#handle = engine.open(this.space.partition, this.clientId, answer, wake, (reason) => this.#refuse(reason));
    opened.add(this);
    return this.#handle;
  }

  /** Refuses all requests, because the engine of another thread is out of reach. */
  #refuse(reason) {
    this.#handle = CLOSED;
    this.#polls = 0;
    opened.delete(this);
    const entries = this.#entries;
    this.#entries = createEntries();
    this.#waiting = 0;
    entries.forEach((entry) => {
      entry.waits = false;
      if (!entry.answered) this.#deliveries.add(deliverRefused, entry, { name: 'NotSupportedError', message: reason });
      else this.#deliveries.add(deliverLost, entry, (entry.loss = 'ClientEnded'));
    });
    for (const stream of this.#streams) stream.fail(new DOMException(reason, 'NotSupportedError'));
    this.#streams = [];
  }

  /** Closes the client in the engine, unless a request, a lock or a stream needs it. */
  closeIfIdle() {
    if (this.#entries.size > 0 || this.#waiting > 0 || this.#streams.length > 0 || this.#polls === 1) return;
    engine.close(this.#handle);
    this.#handle = CLOSED;
    opened.delete(this);
  }

  request(entry) {
    if (isRemote && entry.steal && entry.limit === undefined) this.#predictLosses(entry);
    const how = entry.wait + 8 * limitOf(entry.mode, entry.limit);
    const handle = this.#open();
    const number = ++this.#last;
    answer[NUMBER] = entry.number = number;
    const outer = entry.outer === undefined ? undefined : entry.within;
    if (outer === undefined) entry.id = asSmi(engine.request(handle, entry.scope, how, entry.tag));
    else this.#requestWithin(outer, handle, entry, how);
    if (!entry.answered) this.#entries.set(number, entry);
    this.#deliverMail();
    if (!entry.answered) {
      entry.waits = true;
      this.#wait(1);
      this.#startPolling();
    }
  }

  /** Requests a lock within an outer one. Refuses the request if that one would wait for itself. */
  #requestWithin(outer, handle, entry, how) {
    answer[COUNT] = outer.number;
    follow(engine.requestWithin(handle, entry.scope, how, entry.tag), (made) => {
      if (typeof made === 'number') return;
      entry.answered = true;
      this.#entries.delete(entry.number);
      this.#stopWaiting(entry);
      this.#deliveries.add(deliverRefused, entry, ownDeadlockOf(made, this.clientId));
    });
  }

  /** Marks the own locks that a steal takes, before the engine of the main thread says so. */
  #predictLosses(steal) {
    this.#entries.forEachBeside(steal, (entry) => {
      if (entry.answered) entry.loss ??= CAUSES[0];
    });
  }

  release(entry) {
    answer[NUMBER] = entry.number;
    const released = engine.release(this.#handle);
    this.#deliverMail();
    if (released) this.#entries.delete(entry.number);
    return released;
  }

  abort(entry) {
    // Otherwise the request holds its lock until the grant is delivered, see entry.js.
    if (entry.answered || !this.#entries.delete(entry.number)) return;
    // Another thread may have granted it meanwhile, so it is pending or held.
    answer[NUMBER] = entry.number;
    engine.cancel(this.#handle);
    this.#stopWaiting(entry);
    this.#deliverMail();
  }

  expire(entry) {
    answer[NUMBER] = entry.number;
    engine.expire(this.#handle);
    this.#deliverMail();
  }

  downgrade(entry, mode, limit) {
    answer[NUMBER] = entry.number;
    const downgraded = engine.downgrade(this.#handle, limitOf(mode, limit));
    this.#deliverMail();
    return downgraded;
  }

  forceRelease(name) {
    return this.#ask(engine.forceRelease(this.#open(), name), (count) => count);
  }

  query() {
    return this.#ask(engine.query(this.#open()), snapshotOf);
  }

  inspect() {
    return this.#ask(engine.query(this.#open()), detailsOf);
  }

  blockers(id) {
    return read(engine.blockers(this.#open(), Number(id)), blockersOf);
  }

  deadlocks() {
    return read(engine.deadlocks(this.#open()), deadlocksOf);
  }

  /** Reads the answer to a call that returns mail too. */
  #ask(answer, convert) {
    this.#deliverMail();
    return read(answer, convert);
  }

  watchContention(entry) {
    answer[NUMBER] = entry.number;
    engine.watchContention(this.#handle);
    this.#deliverMail();
  }

  subscribe(stream) {
    this.#takeEvents();
    this.#streams = [...this.#streams, stream];
    this.#setCapacity();
  }

  unsubscribe(stream) {
    this.#streams = this.#streams.filter((known) => known !== stream);
    this.#setCapacity();
  }

  keepAlive(more) {
    this.#wait(more);
  }

  /** Sets how many events the engine keeps for a blocked thread: as many as the largest stream. */
  #setCapacity() {
    engine.subscribe(this.#open(), this.#streams.reduce((most, { capacity }) => Math.max(most, capacity), 0));
  }

  /** Reads all events of the engine and pushes them to the streams. */
  #takeEvents() {
    const streams = this.#streams;
    if (streams.length === 0) return;
    const push = ({ missed, events }) => {
      for (const stream of streams) {
        if (missed > 0) stream.pushGap(missed);
        for (const event of events) stream.push(event);
      }
    };
    follow(engine.takeEvents(this.#handle), (columns) => push(eventsOf(columns, Date.now())));
  }

  task(work) {
    const add = () => this.#deliveries.add(work, undefined, undefined);
    if (isRemote) engine.settle(this.#open()).then(add, add);
    else add();
  }

  #wait(more) {
    const before = this.#waiting;
    this.#waiting = before + more;
    if ((before === 0) !== (this.#waiting === 0)) engine.keepAlive(this.#open(), this.#waiting);
  }

  #stopWaiting(entry) {
    if (entry.waits) {
      entry.waits = false;
      this.#wait(-1);
    }
  }

  /**
   * Polls for mail while a request waits: most locks are held for less time than a wakeup takes.
   * Backs off after failures.
   */
  #startPolling() {
    if (this.#polls === 1) {
      this.#polled = 0;
    } else if (this.#skips > 0 || POLLS_MAX === 0) {
      this.#skips--;
    } else {
      this.#polls = 1;
      this.#polled = 0;
      setImmediate(this.#poll);
    }
  }

  #poll = () => {
    const waiting = this.#waiting;
    const last = waiting === 0 || ++this.#polled > POLLS_MAX;
    if (this.#handle === CLOSED) return;
    if (last) this.#polls = 0;
    engine.take(this.#handle, this.#polls);
    this.#deliverMail();
    if (this.#waiting < waiting) {
      this.#failures = 0;
    } else if (last && waiting > 0) {
      this.#failures = Math.min(this.#failures + 1, FAILURES_MAX);
      this.#skips = 2 ** this.#failures;
    }
    if (!last) setImmediate(this.#poll);
  };

  /** Delivers all mail, each in a task of its own. */
  #deliverMail() {
    for (;;) {
      const end = MAIL + answer[COUNT] * MAIL_LENGTH;
      for (let at = MAIL; at < end; at += MAIL_LENGTH) this.#deliver(answer[at], answer[at + 1], answer[at + 2]);
      if (answer[MORE] === 0) return;
      engine.take(this.#handle, this.#polls);
    }
  }

  /** Delivers mail that is not the outcome of a request. */
  #deliverToWatcher(kind, number) {
    if (kind === EVENTS) return this.#takeEvents();
    const entry = this.#entries.get(number);
    if (entry !== undefined) this.#deliveries.add(deliverContended, entry, undefined);
  }

  #deliver(kind, number, value) {
    if (kind >= CONTENDED) return this.#deliverToWatcher(kind, number);
    const entry = this.#entries.get(number);
    // The client aborted the request meanwhile.
    if (entry === undefined) return;
    entry.answered = true;
    this.#stopWaiting(entry);
    if (kind === GRANTED) {
      this.#deliveries.add(deliverGranted, entry, asSmi(value));
      return;
    }
    this.#entries.delete(number);
    if (kind === UNAVAILABLE) {
      this.#deliveries.add(deliverUnavailable, entry, undefined);
    } else if (kind === LOST) {
      entry.loss = CAUSES[value];
      this.#deliveries.add(deliverLost, entry, CAUSES[value]);
    } else {
      this.#deliveries.add(deliverAborted, entry, CAUSES[value]);
    }
  }
}

/** Returns the same number as a small integer if it fits: V8 stores that without a heap object. */
function asSmi(number) {
  const integer = number | 0;
  return integer === number ? integer : number;
}

/** Reads an answer of the engine, which a worker may have to await. */
function read(answer, convert) {
  return answer instanceof Promise ? answer.then(convert) : convert(answer);
}

/** The same for an answer that the client does not get. A refusal of the engine ends all else. */
function follow(answer, use) {
  if (answer instanceof Promise) answer.then(use, () => {});
  else use(answer);
}

function deliverRefused(entry, refusal) {
  entry.refused(refusal);
}

function deliverContended(entry) {
  entry.contended();
}

function deliverGranted(entry, token) {
  entry.granted(token);
}

function deliverUnavailable(entry) {
  entry.unavailable();
}

function deliverLost(entry, cause) {
  entry.lost(cause);
}

function deliverAborted(entry, cause) {
  entry.aborted(cause);
}
