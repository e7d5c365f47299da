// Reads the answers of the engine, which are columns: numbers, one text, and the ends of its parts.
// See native/src/report.rs.

/** Types of events, as in native/src/mail.rs. */
const EVENT_TYPES = ['requested', 'granted', 'unavailable', 'released', 'withdrawn', 'aborted', 'lost', 'downgraded'];

export const CAUSES = ['Stolen', 'ForceReleased', 'HeldTooLong', 'Evicted', 'Suspended', 'ClientEnded'];

// Numbers before the entries of a snapshot, of an entry, and of an event.
const HEAD = 3;
const ENTRY = 8;
const EVENT = 7;

const EXCLUSIVE = { mode: 'exclusive' };
const SHARED = { mode: 'shared' };

/** Returns a mode as a limit of the engine: 0 for shared. */
export function limitOf(mode, limit) {
  return limit ?? (mode === 'shared' ? 0 : 1);
}

/** Returns the mode, and the limit if there is one, of a limit of the engine. */
function sharingOf(limit) {
  return limit === 0 ? SHARED : limit === 1 ? EXCLUSIVE : { mode: 'shared', limit };
}

/** Returns the parts of a text, from one index to another. */
function texts(text, ends, from, to) {
  const parts = [];
  for (let index = from; index < to; index++) parts.push(text.slice(index === 0 ? 0 : ends[index - 1], ends[index]));
  return parts;
}

/** Returns the standard's snapshot, which has one name in each row. */
export function snapshotOf([numbers, text, ends]) {
  const snapshot = { held: [], pending: [] };
  const [held, names, count] = numbers;
  const clients = texts(text, ends, names, names + count);
  let next = 0;
  let start = 0;
  for (let at = HEAD; at < numbers.length; at += ENTRY) {
    const rows = at < HEAD + held * ENTRY ? snapshot.held : snapshot.pending;
    const sharing = sharingOf(numbers[at + 1]);
    const clientId = clients[numbers[at + 2]];
    for (const beyond = next + numbers[at + 3]; next < beyond; next++) {
      const end = ends[next];
      rows.push({ name: text.slice(start, end), ...sharing, clientId });
      start = end;
    }
  }
  return snapshot;
}

/** Returns the snapshot with all details. */
export function detailsOf([numbers, text, ends]) {
  const snapshot = { held: [], pending: [] };
  const [held, names, count] = numbers;
  const clients = texts(text, ends, names, names + count);
  const tags = texts(text, ends, names + count, ends.length);
  let next = 0;
  for (let at = HEAD, entry = 0; at < numbers.length; at += ENTRY, entry++) {
    const [id, limit, client, count, fencingToken, since, outer, isTagged] = numbers.subarray(at, at + ENTRY);
    const scope = texts(text, ends, next, next + count);
    next += count;
    const tag = isTagged === 1 ? tags.shift() : undefined;
    const row = { id, scope, ...sharingOf(limit), clientId: clients[client], since, tag, within: outer === 0 ? undefined : outer };
    if (entry < held) snapshot.held.push({ ...row, fencingToken });
    else snapshot.pending.push(row);
  }
  return snapshot;
}

/** Returns how many events are missing, and the others for streams. */
export function eventsOf([numbers, text, ends], time) {
  const events = [];
  let next = 0;
  for (let at = 1; at < numbers.length; at += EVENT) {
    const [kind, id, limit, value, thief, count, isTagged] = numbers.subarray(at, at + EVENT);
    const beyond = next + count + 1 + isTagged;
    const scope = texts(text, ends, next, beyond);
    next = beyond;
    const tag = isTagged === 1 ? scope.pop() : undefined;
    const clientId = scope.pop();
    const type = EVENT_TYPES[kind];
    const event = { type, id, scope, ...sharingOf(limit), clientId, tag, pid: undefined, time };
    if (type === 'granted') event.fencingToken = value;
    if (type === 'lost' || type === 'aborted') Object.assign(event, { cause: CAUSES[value], thief: thief === 0 ? undefined : thief });
    events.push(event);
  }
  return { missed: numbers[0], events };
}

export function blockersOf([[count, ...serials]]) {
  return { held: serials.slice(0, count), pending: serials.slice(count) };
}

export function deadlocksOf([numbers, text, ends]) {
  const deadlocks = [];
  let next = 0;
  for (let at = 0; at < numbers.length; ) {
    const [clients, requests, certain] = numbers.subarray(at, at + 3);
    const ids = [...numbers.subarray(at + 3, at + 3 + requests)];
    deadlocks.push({ clients: texts(text, ends, next, next + clients), ids, outer: undefined, certain: certain === 1 });
    next += clients;
    at += 3 + requests;
  }
  return deadlocks;
}

/** Returns the refusal of a request whose outer lock would wait for itself. */
export function ownDeadlockOf([[outer, ...ids], message], clientId) {
  return { name: 'AbortError', message, cause: { code: 'deadlock', clients: [clientId], ids, outer, certain: true } };
}
