// Elements that several views share: names, clients, links, copy buttons.

import { h } from './dom.js';
import { duration, exact, pieces, plain, short } from './format.js';

/** Waits from which a row is marked as a warning, and as a problem. */
export const WARN_MS = 5_000;
export const BAD_MS = 30_000;

export const level = (ms) => (ms >= BAD_MS ? 'bad' : ms >= WARN_MS ? 'warn' : '');

const SHOWN_MAX = 72;

/** Returns untrusted text, or its two ends if it is long. */
export function text(value, max = SHOWN_MAX) {
  if (value === '') return h('i', { class: 'none' }, '(empty name)');
  if (value.length <= max) return pieces(value).map(piece);
  const head = Math.ceil(max * 0.7);
  return [pieces(value.slice(0, head)).map(piece), h('span', { class: 'none' }, '…'), pieces(value.slice(head - max)).map(piece)];
}

const piece = ({ text: value, isEscape }) => (isEscape ? h('span', { class: 'esc' }, value) : value);

export function name(value, max) {
  const long = value.length > (max ?? SHOWN_MAX);
  return h('bdi', { class: 'name', title: long ? plain(value.slice(0, 400)) : undefined }, text(value, max));
}

/** Returns a link to the view of a name. A long name is identified by its first request. */
export function nameLink(value, { space, request, length, max } = {}) {
  const long = (length ?? 0) > 0 || value.length > 160;
  const query = long ? { first: request } : { name: value };
  return h('a', { href: link('name', { ...query, ...spaceQuery(space) }) }, name(value, max), long && length ? h('span', { class: 'space' }, ` ${length} characters`) : undefined);
}

/** Returns links to the names of a request. */
export function names(entry, space) {
  const links = entry.names.map((value) => nameLink(value, { space, request: entry.request, max: 40 }));
  const joined = links.flatMap((one, index) => (index === 0 ? [one] : [', ', one]));
  return [joined, entry.more > 0 ? h('span', { class: 'space' }, ` and ${entry.more} more`) : undefined];
}

/** Returns the limit of a request, if it has one above 1. */
export const limit = (entry) => entry.mode?.limit;

export const mode = (entry) => (limit(entry) === undefined ? entry.mode ?? 'exclusive' : 'shared');

/** Returns the mode in words; with the number of holders, how many of the limit hold. */
export const sharing = (entry, held) => (limit(entry) === undefined ? mode(entry) : held === undefined ? `limit ${limit(entry)}` : `${held} of ${limit(entry)}`);

/** Returns how long a lock may still be held, if its hold has a maximum. */
export function left(entry) {
  const ms = entry['left-ms'];
  return ms === undefined ? undefined : h('span', { class: 'space', title: 'Its longest hold ends it then' }, ` ${short(ms)} left`);
}

/** Returns a mark for a client whose process is stopped, as by Ctrl-Z. */
export const stopped = (client) => (client.stopped ? [' ', h('span', { class: 'pill warn', title: 'Its process is stopped, as by Ctrl-Z, and keeps its locks' }, 'stopped')] : undefined);

/** Returns a client with its tag, its process and its number. */
export function clientOf(entry) {
  const id = [entry.pid === undefined ? undefined : `pid ${entry.pid}`, `client ${entry.client}`].filter(Boolean).join(' · ');
  if (!entry.tag) return h('span', { class: 'who' }, h('span', { class: 'id' }, id), stopped(entry));
  return h('span', { class: 'who' }, h('bdi', { class: 'tag' }, text(entry.tag, 48)), ' ', h('span', { class: 'id' }, id), stopped(entry));
}

/** Returns a client as one line of text. */
export function clientText(entry) {
  const tag = entry.tag ? `${plain(entry.tag)} ` : '';
  const pid = entry.pid === undefined ? '' : `pid ${entry.pid}, `;
  return `${tag}(${pid}client ${entry.client})`;
}

/** Returns a duration with the exact moment of its start as a tooltip. */
export const age = (ms, kind = duration) => h('time', { title: `since ${exact(ms)}`, datetime: exact(ms) }, kind(ms));
export const shortAge = (ms) => age(ms, short);

export function spaceName({ partition = '', tenant = '', origin = '' }) {
  const own = partition === '' ? 'default' : plain(partition);
  const whose = [tenant && `tenant ${plain(tenant)}`, origin && plain(origin)].filter(Boolean).join(', ');
  return whose === '' ? own : `${own} (${whose})`;
}

export const isDefaultSpace = ({ partition = '', tenant = '', origin = '' } = {}) => partition + tenant + origin === '';

// ---- links: the address has the whole state of a view, behind the # sign, which no browser sends

export function link(view, query = {}) {
  const known = Object.entries(query).filter(([, value]) => value !== undefined && value !== '' && value !== null);
  const text = known.map(([key, value]) => `${key}=${escapeUnits(String(value))}`).join('&');
  return `#/${view}${text === '' ? '' : `?${text}`}`;
}

export function route() {
  const [path, text = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  const query = {};
  for (const part of text.split('&').filter(Boolean)) {
    const [key, value = ''] = part.split('=', 2);
    query[key] = unescapeUnits(value);
  }
  return { path: path || 'names', query };
}

/** Escapes code units one by one: encodeURIComponent() throws at a lone surrogate. */
function escapeUnits(value) {
  return value.replace(/[^\w./:@,;-]/g, (unit) => `~${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function unescapeUnits(value) {
  return value.replace(/~([0-9a-f]{4})/g, (_, digits) => String.fromCharCode(parseInt(digits, 16)));
}

export function spaceQuery(space) {
  const { partition, tenant, origin } = space ?? {};
  return { partition, tenant, origin };
}

/** Returns the partition in an address, if there is one. */
export function spaceOf({ partition, tenant, origin, space }) {
  if (space === 'one' || partition || tenant || origin) return { partition: partition ?? '', tenant: tenant ?? '', origin: origin ?? '' };
  return undefined;
}

// ---- copy buttons

export async function copy(value, what = 'copied') {
  await navigator.clipboard.writeText(value);
  toast(what);
}

export function toast(value) {
  const note = h('div', { class: 'toast', role: 'status' }, value);
  document.body.append(note);
  setTimeout(() => note.remove(), 1800);
}

export const copyJson = (data, label = 'Copy JSON') =>
  h('button', { class: 'small', type: 'button', on: { click: () => copy(JSON.stringify(data, null, 2), 'JSON copied') } }, label);

export const empty = (title, ...rest) => h('div', { class: 'empty' }, h('b', {}, title), rest);
