// The messages between a client and a lock service, as docs/wire.md has them: one JSON text a
// frame.
//
// JSON can escape lone surrogates ("\ud800"), and JavaScript reads them back: any string is a name.

import { append, each, mapped, plainList } from '../internal/lists.js';

// Read now: a page may replace them.
const { parse, stringify } = JSON;

/** The subprotocols that this client speaks, the newest first: a version and the one before. */
export const SUBPROTOCOLS = ['navlocks.2'];

const TOKEN_SUBPROTOCOL = 'navlocks.token.';

const PARTITION_BYTES_MAX = 256;

/** The words for `entry.wait`. */
const WAITS = [undefined, 'if-available', 'steal', 'steal-all', 'overtake'];

const CAUSES = {
  'force-released': 'ForceReleased',
  'held-too-long': 'HeldTooLong',
  evicted: 'Evicted',
  suspended: 'Suspended',
  'client-ended': 'ClientEnded',
  'not-reclaimed': 'NotReclaimed',
};

/** Returns the subprotocols of a browser's handshake, with the token: a page cannot set headers. */
export function subprotocols(token) {
  if (token === undefined) return SUBPROTOCOLS;
  const encoded = btoa(utf8(token)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return [...SUBPROTOCOLS, TOKEN_SUBPROTOCOL + encoded];
}

/** Writes the messages of a client. Members with their default value are omitted. */
export const write = {
  hello: (partition, leaseMs, resume, way = {}, secret = undefined, process = undefined) =>
    stringify({
      hello: { partition: unless(partition, ''), 'lease-ms': leaseMs, ...way, secret, process, resume },
    }),
  open: (client, partition) => stringify({ open: { client, partition: unless(partition, '') } }),
  close: (client) => stringify({ close: client }),
  /**
   * In a claim a request has its age, its token or its place if it is known, and the mode of its
   * downgrade.
   */
  request: (id, client, { scope, mode, limit, wait, tag, maxHold, traceparent, within }, { token, place, ms, sharing = { mode, limit } } = {}) =>
    stringify({
      request: {
        id,
        client: unless(client, 0),
        names: plainList(typeof scope === 'string' ? [scope] : scope),
        mode: unless(modeOf(sharing), 'exclusive'),
        wait: WAITS[wait],
        tag,
        'max-hold-ms': maxHold,
        traceparent,
        within: within?.id,
        token,
        place: place && plainList(place),
        ms,
      },
    }),
  claimed: '"claimed"',
  present: '"present"',
  end: (id) => `{"end":${id}}`,
  timedOut: (id) => `{"timed-out":${id}}`,
  expired: (id) => `{"expired":${id}}`,
  downgrade: (id, sharing) => stringify({ downgrade: { id, mode: modeOf(sharing) } }),
  watch: (what) => stringify({ watch: what }),
  ask: (id, client, question) => stringify({ ask: { id, client: unless(client, 0), question } }),
  ping: (number) => `{"ping":${number}}`,
  bye: '"bye"',
};

/** Returns why this is no name of a partition, if so: the service would end the session. */
export function wrongPartition(name) {
  if (!name.isWellFormed()) return 'the name of a partition cannot have lone surrogates';
  const bytes = bytesBeyond(name, PARTITION_BYTES_MAX);
  if (bytes === undefined) return undefined;
  return `the name of a partition has ${bytes} bytes, and ${PARTITION_BYTES_MAX} are allowed: use a shorter one`;
}

/** Returns whether a text is the id of a request. */
export function isRequestKey(text) {
  const parts = /^(\d{1,16})\.(\d{1,16})$/.exec(text);
  return parts !== null && Number(parts[1]) < 2 ** 32 && Number(parts[2]) <= Number.MAX_SAFE_INTEGER;
}

/** Parses a message of the service into { word, body }; undefined if it is malformed. */
export function read(text) {
  let message;
  try {
    message = parse(text);
  } catch {
    return undefined;
  }
  if (typeof message === 'string') return { word: message };
  if (typeof message !== 'object' || message === null) return undefined;
  const word = Object.keys(message)[0];
  return word === undefined ? undefined : { word, body: message[word] };
}

/** Returns the `cause` of an error for the cause of a loss on the wire. */
export function causeOf(cause) {
  return typeof cause === 'object' && cause !== null && 'stolen' in cause ? 'Stolen' : (CAUSES[cause] ?? String(cause));
}

/** Returns a mode as the wire has it. */
function modeOf({ mode, limit }) {
  return limit === undefined ? mode : { limit };
}

/** Returns the mode in a word of the standard, and the limit if there is one. */
export function sharingOf(mode = 'exclusive') {
  return typeof mode === 'string' ? { mode } : { mode: 'shared', limit: mode.limit };
}

/** Returns a cycle of requests that wait for each other. */
export function cycleOf({ clients, requests, outer, possible = false }) {
  return { clients, ids: requests, outer, certain: !possible };
}

/** Returns an event for streams. */
export function eventOf({ about: { request, client, names, mode, tag, traceparent, pid }, what }, time) {
  const type = typeof what === 'string' ? what : Object.keys(what)[0];
  const event = { type, id: request, scope: names, ...sharingOf(mode), clientId: client, tag, traceparent, pid, time };
  const detail = what[type];
  if (type === 'granted') event.fencingToken = detail;
  else if (type === 'lost' || type === 'aborted') Object.assign(event, { cause: causeOf(detail), thief: detail.stolen });
  else if (type === 'deadlock') Object.assign(event, cycleOf(detail));
  return event;
}

/** Returns the standard's snapshot, with one name in each row. */
export function standardSnapshot({ held, pending }) {
  const rows = (entries) => {
    const found = [];
    each(entries, ({ about: { names, mode, client: clientId } }) => {
      each(names, (name) => append(found, { name, ...sharingOf(mode), clientId }));
    });
    return found;
  };
  return { held: rows(held), pending: rows(pending) };
}

/** Returns until when a lock may be held, if its hold has a maximum. */
const untilOf = ({ 'left-ms': left }, now) => (left === undefined ? undefined : now + left);

/** Returns a snapshot with all details. */
export function fullSnapshot({ held, pending }, now) {
  const row = ({ about: { request, client, names, mode, tag, traceparent, pid, process }, ms, within }) => ({
    id: request,
    scope: names,
    ...sharingOf(mode),
    clientId: client,
    since: now - ms,
    tag,
    traceparent,
    pid,
    process,
    within,
  });
  return {
    held: mapped(held, (lock) => ({ ...row(lock), fencingToken: lock.token, until: untilOf(lock, now) })),
    pending: mapped(pending, row),
  };
}

/** Returns the length of a text in UTF-8 if it is more than `max`. */
export function bytesBeyond(text, max) {
  // A code unit has at most three bytes in UTF-8.
  if (text.length * 3 <= max) return undefined;
  const { length } = utf8(text);
  return length > max ? length : undefined;
}

/** Returns the bytes of a text in UTF-8, one in each code unit: jsdom may have no TextEncoder. */
function utf8(text) {
  const wellFormed = text.replace(/\p{Surrogate}/gu, '\uFFFD');
  return encodeURIComponent(wellFormed).replace(/%(..)/g, (_, byte) => String.fromCharCode(Number.parseInt(byte, 16)));
}

function unless(value, usual) {
  return value === usual ? undefined : value;
}
