// The transport within a process, over the native addon. All threads share its lock space.

import { randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers';
import { loadAddon } from './addon.js';
import { WeakValues } from '../internal/collections.js';
import { Deliveries } from '../internal/delivery.js';
import { createTurns } from '../internal/turns.js';

/** `problem` is why there is no addon, if so. */
const { addon, problem } = loadAddon();

export { problem };

const CAUSES = ['Stolen', 'ForceReleased', 'HeldTooLong', 'Evicted', 'Suspended', 'ClientEnded'];
/** Types of events, as in native/src/mail.rs. */
const EVENT_TYPES = ['requested', 'granted', 'unavailable', 'released', 'withdrawn', 'aborted', 'lost', 'downgraded'];

// The kinds of mail, as in native/src/mail.rs: the number of a type of event, or a kind of mail
// alone.
const GRANTED = 1;
const UNAVAILABLE = 2;
const LOST = 6;
const CONTENDED = 8;
const EVENTS = 9;

// Layout of the array that is shared with the addon: the number of the request that a call is
// about, then the answer: amount of mail, whether there is more, mail.
const NUMBER = 0;
const COUNT = 1;
const MORE = 2;
const MAIL = 3;
const MAIL_LENGTH = 3;
const MAIL_MAX = 256;

/** The answer to the last call, for all lock spaces: it is read at once. */
const answer = new Float64Array(MAIL + MAIL_MAX * MAIL_LENGTH);

/**
 * Turns of the event loop that a thread polls before it sleeps: some fifty microseconds. On one
 * processor, polling would only delay the holder.
 */
const POLLS_MAX = availableParallelism() > 1 ? 40 : 0;
/** The largest exponent of the back-off: after n failures in a row 2^n waits are not polled. */
const FAILURES_MAX = 5;

// Numbers of an entry in a report, as in native/src/report.rs.
const NUMBERS = 7;

/** The id of this thread in every lock space. */
const clientId = randomUUID();

/** In place of a handle, while the transport has no client in the addon. */
const CLOSED = -1;
/** So many idle clients are kept: opening one costs as much as some requests. */
const IDLE_MAX = 64;

/** The transports of this thread, by partition. */
const transports = new WeakValues();
/** Those that have a client in the addon. */
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
  #entries = new Map();
  /** The number of waiters, which keep the event loop alive. */
  #waiting = 0;
  #deliveries = new Deliveries(createTurns);
  /** Event streams of subscribers. */
  #streams = [];
  /** 1 while this thread polls for mail, so that the addon need not wake it. */
  #polls = 0;
  /** Polls since the last wait began. */
  #polled = 0;
  /** Waits in a row that polling did not end, and waits still to be skipped for it. */
  #failures = 0;
  #skips = 0;

  constructor(partition) {
    this.space = Object.freeze({ origin: undefined, partition });
  }

  /** Opens a client in the addon if there is none. Returns its handle. */
  #open() {
    if (this.#handle !== CLOSED) return this.#handle;
    sweep();
    this.#handle = addon.open(this.space.partition, this.clientId, answer, () => {
      if (this.#handle === CLOSED) return;
      addon.take(this.#handle, this.#polls);
      this.#deliverMail();
    });
    opened.add(this);
    return this.#handle;
  }

  /** Closes the client in the addon, unless a request, a lock or a stream needs it. */
  closeIfIdle() {
    if (this.#entries.size > 0 || this.#waiting > 0 || this.#streams.length > 0 || this.#polls === 1) return;
    addon.close(this.#handle);
    this.#handle = CLOSED;
    opened.delete(this);
  }

  request(entry) {
    const how = entry.wait + 8 * limitOf(entry.mode, entry.limit);
    const handle = this.#open();
    const number = ++this.#last;
    answer[NUMBER] = entry.number = number;
    const outer = entry.outer === undefined ? undefined : entry.within;
    if (outer === undefined) entry.id = asSmi(addon.request(handle, entry.scope, how, entry.tag));
    else if (!this.#requestWithin(outer, handle, entry, how)) return;
    this.#entries.set(number, entry);
    this.#deliverMail();
    if (!entry.answered) {
      entry.waits = true;
      this.#wait(1);
      this.#startPolling();
    }
  }

  /** Requests a lock within an outer one. Returns false if that one would wait for itself. */
  #requestWithin(outer, handle, entry, how) {
    answer[COUNT] = outer.number;
    const made = addon.requestWithin(handle, entry.scope, how, entry.tag);
    if (typeof made === 'number') {
      entry.id = asSmi(made);
      return true;
    }
    const [[message], ids, [own]] = made;
    const cause = { code: 'deadlock', clients: [this.clientId], ids: [...ids], outer: own, certain: true };
    this.#deliveries.add(deliverRefused, entry, { name: 'AbortError', message, cause });
    return false;
  }

  release(entry) {
    answer[NUMBER] = entry.number;
    const released = addon.release(this.#handle);
    this.#deliverMail();
    if (released) this.#entries.delete(entry.number);
    return released;
  }

  abort(entry) {
    // Otherwise the request holds its lock until the grant is delivered, see entry.js.
    if (entry.answered || !this.#entries.delete(entry.number)) return;
    // Another thread may have granted it meanwhile, so it is pending or held.
    answer[NUMBER] = entry.number;
    addon.cancel(this.#handle);
    this.#stopWaiting(entry);
    this.#deliverMail();
  }

  expire(entry) {
    answer[NUMBER] = entry.number;
    addon.expire(this.#handle);
    this.#deliverMail();
  }

  downgrade(entry, mode, limit) {
    answer[NUMBER] = entry.number;
    const downgraded = addon.downgrade(this.#handle, limitOf(mode, limit));
    this.#deliverMail();
    return downgraded;
  }

  forceRelease(name) {
    const count = addon.forceRelease(this.#open(), name);
    this.#deliverMail();
    return count;
  }

  query() {
    const [held, numbers, text, ends, clients] = addon.query(this.#open());
    const snapshot = { held: [], pending: [] };
    let next = 0;
    let start = 0;
    for (let at = 0; at < numbers.length; at += NUMBERS) {
      const rows = at < held * NUMBERS ? snapshot.held : snapshot.pending;
      const sharing = sharingOf(numbers[at + 1]);
      const clientId = clients[numbers[at + 2]];
      // The standard's snapshot has one name in each row.
      for (const beyond = next + numbers[at + 3]; next < beyond; next++) {
        const end = ends[next];
        rows.push({ name: text.slice(start, end), ...sharing, clientId });
        start = end;
      }
    }
    return snapshot;
  }

  inspect() {
    const [held, numbers, text, ends, clients, tags] = addon.query(this.#open());
    const names = Array.from(ends, (end, index) => text.slice(index === 0 ? 0 : ends[index - 1], end));
    const snapshot = { held: [], pending: [] };
    let next = 0;
    for (let at = 0, entry = 0; at < numbers.length; at += NUMBERS, entry++) {
      const [id, limit, client, count, fencingToken, since, outer] = numbers.subarray(at, at + NUMBERS);
      const scope = names.slice(next, next + count);
      next += count;
      const row = { id, scope, ...sharingOf(limit), clientId: clients[client], since, tag: tags[entry], within: outer === 0 ? undefined : outer };
      if (entry < held) snapshot.held.push({ ...row, fencingToken });
      else snapshot.pending.push(row);
    }
    return snapshot;
  }

  blockers(id) {
    const [held, pending] = addon.blockers(this.#open(), Number(id));
    return { held: [...held], pending: [...pending] };
  }

  deadlocks() {
    return addon.deadlocks(this.#open()).map(([clients, ids, [certain]]) => ({ clients, ids: [...ids], outer: undefined, certain: certain === 1 }));
  }

  watchContention(entry) {
    answer[NUMBER] = entry.number;
    addon.watchContention(this.#handle);
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

  /** Sets how many events the addon keeps for a blocked thread: as many as the largest stream. */
  #setCapacity() {
    addon.subscribe(this.#open(), this.#streams.reduce((most, { capacity }) => Math.max(most, capacity), 0));
  }

  /** Reads all events of the addon and pushes them to the streams. */
  #takeEvents() {
    const streams = this.#streams;
    if (streams.length === 0) return;
    const time = Date.now();
    const [missed, ...rows] = addon.takeEvents(this.#handle);
    for (const stream of streams) if (missed > 0) stream.pushGap(missed);
    for (const row of rows) {
      const event = eventOf(row, time);
      for (const stream of streams) stream.push(event);
    }
  }

  task(work) {
    this.#deliveries.add(work, undefined, undefined);
  }

  #wait(more) {
    const before = this.#waiting;
    this.#waiting = before + more;
    if ((before === 0) !== (this.#waiting === 0)) addon.keepAlive(this.#open(), this.#waiting);
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
    if (last) this.#polls = 0;
    addon.take(this.#handle, this.#polls);
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
      addon.take(this.#handle, this.#polls);
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

const EXCLUSIVE = { mode: 'exclusive' };
const SHARED = { mode: 'shared' };

/** Returns a mode as a limit as in native/src/report.rs: 0 for shared. */
function limitOf(mode, limit) {
  return limit ?? (mode === 'shared' ? 0 : 1);
}

/** Returns the mode, and the limit if there is one, of a limit as in native/src/report.rs. */
function sharingOf(limit) {
  return limit === 0 ? SHARED : limit === 1 ? EXCLUSIVE : { mode: 'shared', limit };
}

/** Returns an event for streams. */
function eventOf([[kind, id, limit, value, thief], scope, clientId, tag], time) {
  const type = EVENT_TYPES[kind];
  const event = { type, id, scope, ...sharingOf(limit), clientId, tag, pid: undefined, time };
  if (type === 'granted') event.fencingToken = value;
  if (type === 'lost' || type === 'aborted') Object.assign(event, { cause: CAUSES[value], thief: thief === 0 ? undefined : thief });
  return event;
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
