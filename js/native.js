// The transport within a process: the native addon, whose lock space all worker threads share.

import { randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers';
import { loadAddon } from './addon.js';
import { Deliveries } from './delivery.js';
import { createTurns } from './turns.js';

/** `problem` says why there is no addon, if so. */
const { addon, problem } = loadAddon();

export { problem };

const MODES = ['exclusive', 'shared'];
const CAUSES = ['Stolen', 'ForceReleased', 'Evicted', 'Suspended', 'ClientEnded'];
/** Types of events, as in native/src/inbox.rs. */
const EVENT_TYPES = ['requested', 'granted', 'unavailable', 'released', 'withdrawn', 'aborted', 'lost'];

// What mail says, as in native/src/inbox.rs: the number of a type of event, or what is for mail alone.
const GRANTED = 1;
const UNAVAILABLE = 2;
const LOST = 6;
const CONTENDED = 7;
const EVENTS = 8;

// The array by which the addon answers: the slot of a new request, how much mail, whether there is more; then mail.
const SLOT = 0;
const COUNT = 1;
const MORE = 2;
const MAIL = 3;
const MAIL_LENGTH = 3;
const MAIL_MAX = 256;

/**
 * For how many turns of the event loop a thread looks for mail before it sleeps: some fifty microseconds. Where there is one
 * processor, looking would only keep the holder from going on.
 */
const POLLS_MAX = availableParallelism() > 1 ? 40 : 0;
/** After so many failures in a row, one wait in two to this power is polled for. */
const FAILURES_MAX = 5;

// Numbers of an entry in a report, as in native/src/report.rs.
const NUMBERS = 6;

/** Who this thread is, in every lock space. */
const clientId = randomUUID();

export class NativeTransport {
  clientId = clientId;
  space;
  #handle;
  #answer = new Float64Array(MAIL + MAIL_MAX * MAIL_LENGTH);
  /** Entries that may hear something, by id. */
  #entries = new Map();
  /** How many of them wait: as long as any does, the event loop stays alive. */
  #waiting = 0;
  #deliveries = new Deliveries(createTurns);
  /** Streams of events, { stream, capacity }. */
  #streams = [];
  /** Whether this thread comes for its mail by itself, and how it went so far. */
  #polls = 0;
  #polled = 0;
  #failures = 0;
  #skips = 0;

  constructor(partition = '') {
    this.space = Object.freeze({ origin: undefined, partition });
    this.#handle = addon.open(partition, this.clientId, this.#answer, () => {
      addon.take(this.#handle, this.#polls);
      this.#sort();
    });
  }

  request(entry) {
    const how = (entry.mode === 'shared' ? 1 : 0) + 2 * entry.wait;
    const id = small(addon.request(this.#handle, entry.scope, how, entry.tag));
    entry.id = id;
    entry.slot = small(this.#answer[SLOT]);
    this.#entries.set(id, entry);
    this.#sort();
    if (!entry.answered) {
      entry.waits = true;
      this.#wait(1);
      this.#startPolling();
    }
  }

  release(entry) {
    const released = addon.release(this.#handle, entry.slot, entry.id);
    this.#sort();
    if (released) this.#entries.delete(entry.id);
    return released;
  }

  abort(entry) {
    this.#entries.delete(entry.id);
    this.#stopWaiting(entry);
    addon.abort(this.#handle, entry.slot, entry.id);
    this.#sort();
  }

  forceRelease(name) {
    const count = addon.forceRelease(this.#handle, name);
    this.#sort();
    return count;
  }

  query() {
    const [held, numbers, text, ends, clients] = addon.query(this.#handle);
    const snapshot = { held: [], pending: [] };
    let next = 0;
    let start = 0;
    for (let at = 0; at < numbers.length; at += NUMBERS) {
      const rows = at < held * NUMBERS ? snapshot.held : snapshot.pending;
      const mode = MODES[numbers[at + 1]];
      const clientId = clients[numbers[at + 2]];
      // The standard knows one name each.
      for (const beyond = next + numbers[at + 3]; next < beyond; next++) {
        const end = ends[next];
        rows.push({ name: text.slice(start, end), mode, clientId });
        start = end;
      }
    }
    return snapshot;
  }

  inspect() {
    const [held, numbers, text, ends, clients, tags] = addon.query(this.#handle);
    const names = Array.from(ends, (end, index) => text.slice(index === 0 ? 0 : ends[index - 1], end));
    const snapshot = { held: [], pending: [] };
    let next = 0;
    for (let at = 0, entry = 0; at < numbers.length; at += NUMBERS, entry++) {
      const [id, mode, client, count, fencingToken, since] = numbers.subarray(at, at + NUMBERS);
      const scope = names.slice(next, next + count);
      next += count;
      const row = { id, scope, mode: MODES[mode], clientId: clients[client], since, tag: tags[entry] };
      if (entry < held) snapshot.held.push({ ...row, fencingToken });
      else snapshot.pending.push(row);
    }
    return snapshot;
  }

  blockers(id) {
    const [held, pending] = addon.blockers(this.#handle, Number(id));
    return { held: [...held], pending: [...pending] };
  }

  deadlocks() {
    return addon.deadlocks(this.#handle).map(([clients, ids]) => ({ clients, ids: [...ids] }));
  }

  watchContention(entry) {
    addon.watchContention(this.#handle, entry.slot, entry.id);
    this.#sort();
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

  /** A blocked thread takes no events: the addon keeps as many as the largest stream. */
  #setCapacity() {
    addon.subscribe(this.#handle, this.#streams.reduce((most, { capacity }) => Math.max(most, capacity), 0));
  }

  /** Hands all events out that happened until now. */
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
    if ((before === 0) !== (this.#waiting === 0)) addon.keepAlive(this.#handle, this.#waiting);
  }

  #stopWaiting(entry) {
    if (entry.waits) {
      entry.waits = false;
      this.#wait(-1);
    }
  }

  /**
   * To put a thread to sleep and wake it takes longer than most locks are held between threads. So who begins to wait looks
   * for its mail for some turns of the event loop first. When that was in vain it is tried less often.
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
    this.#sort();
    if (this.#waiting < waiting) {
      this.#failures = 0;
    } else if (last && waiting > 0) {
      this.#failures = Math.min(this.#failures + 1, FAILURES_MAX);
      this.#skips = 2 ** this.#failures;
    }
    if (!last) setImmediate(this.#poll);
  };

  /** Hands all mail out, each in a task of its own. */
  #sort() {
    const answer = this.#answer;
    for (;;) {
      const end = MAIL + answer[COUNT] * MAIL_LENGTH;
      for (let at = MAIL; at < end; at += MAIL_LENGTH) this.#hand(answer[at], answer[at + 1], answer[at + 2]);
      if (answer[MORE] === 0) return;
      addon.take(this.#handle, this.#polls);
    }
  }

  /** Hands out what concerns no outcome of a request. */
  #handToWatcher(what, id) {
    if (what === EVENTS) return this.#takeEvents();
    const entry = this.#entries.get(id);
    if (entry !== undefined) this.#deliveries.add(tellContended, entry, undefined);
  }

  #hand(what, id, value) {
    if (what >= CONTENDED) return this.#handToWatcher(what, id);
    const entry = this.#entries.get(id);
    // Its owner took it back meanwhile.
    if (entry === undefined) return;
    entry.answered = true;
    this.#stopWaiting(entry);
    if (what === GRANTED) {
      this.#deliveries.add(tellGranted, entry, small(value));
      return;
    }
    this.#entries.delete(id);
    if (what === UNAVAILABLE) {
      this.#deliveries.add(tellUnavailable, entry, undefined);
    } else if (what === LOST) {
      entry.loss = CAUSES[value];
      this.#deliveries.add(tellLost, entry, CAUSES[value]);
    } else {
      this.#deliveries.add(tellAborted, entry, CAUSES[value]);
    }
  }
}

/** The same number, as V8 keeps it without an object of its own if it is small. */
function small(number) {
  const integer = number | 0;
  return integer === number ? integer : number;
}

/** An event of a stream. */
function eventOf([[kind, id, mode, value, thief], scope, clientId, tag], time) {
  const type = EVENT_TYPES[kind];
  const event = { type, id, scope, mode: MODES[mode], clientId, tag, pid: undefined, time };
  if (type === 'granted') event.fencingToken = value;
  if (type === 'lost' || type === 'aborted') Object.assign(event, { cause: CAUSES[value], thief: thief === 0 ? undefined : thief });
  return event;
}

function tellContended(entry) {
  entry.contended();
}

function tellGranted(entry, token) {
  entry.granted(token);
}

function tellUnavailable(entry) {
  entry.unavailable();
}

function tellLost(entry, cause) {
  entry.lost(cause);
}

function tellAborted(entry, cause) {
  entry.aborted(cause);
}
