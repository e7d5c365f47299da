// The view of deadlocks: a picture of each cycle, and how to break it.

import { act } from './acting.js';
import { h } from './dom.js';
import { duration, exact, moment, plain, plural } from './format.js';
import { copy, copyJson, empty, isDefaultSpace, name, spaceName, clientText } from './parts.js';

export const title = 'Deadlocks';

export const ask = (link) => link.ask('deadlocks');

export function render(data, context) {
  const { rings, skipped = [] } = data;
  const live = rings.filter(isLive);
  const possible = rings.filter((ring) => ring.possible);
  const over = rings.filter((ring) => ring['over-ms'] !== undefined);
  return [
    h('div', { class: 'head' }, h('h1', {}, live.length === 0 ? 'No deadlock' : plural(live.length, 'deadlock')),
      h('span', { class: 'note' }, live.length === 0 ? 'No clients wait for each other at this moment.' : 'None of these requests can be granted until a client releases a lock.')),
    skipped.length > 0 ? h('p', { class: 'wrong' }, `Too many requests to look at in ${skipped.map(spaceName).join(', ')}.`) : undefined,
    live.length > 0 ? h('div', { class: 'rings' }, live.map((ring) => ringCard(ring, context))) : undefined,
    possible.length > 0 ? [h('div', { class: 'head later' }, h('h1', {}, 'Possible'), h('span', { class: 'note' }, 'These clients wait for each other, if it is the holders of their locks that wait and not other tasks. Requests that name their outer lock leave no doubt.')), h('div', { class: 'rings' }, possible.map((ring) => ringCard(ring, context)))] : undefined,
    live.length === 0 && over.length === 0 && possible.length === 0 ? h('section', { class: 'card' }, empty('No deadlock was found', 'The service searches for deadlocks while a dashboard is open, and always with ', h('code', {}, '--deadlocks report'), '. It keeps the last fifty.')) : undefined,
    over.length > 0 ? [h('div', { class: 'head later' }, h('h1', {}, 'Earlier'), h('span', { class: 'note' }, 'The service keeps the last fifty while it runs.')), h('div', { class: 'rings' }, over.map((ring) => ringCard(ring, context)))] : undefined,
  ];
}

/** Returns whether it is a certain deadlock that lasts. */
export const isLive = (ring) => ring['over-ms'] === undefined && !ring.possible;

function ringCard(ring, { rights, link, refresh }) {
  const live = isLive(ring);
  const found = ring['found-ms'];
  const victim = cheapest(ring);
  return h('section', { key: ring.hops.map((hop) => hop.waits?.request ?? hop.client).join(' '), class: `card ring ${live ? 'lasting' : 'over'}` },
    h('header', {},
      h('h2', {}, plural(ring.hops.length, 'client')), h('span', { class: `pill ${live ? 'bad' : ''}` }, live ? 'lasts' : ring.possible ? 'possible' : 'over'),
      h('span', { class: 'note', title: exact(found) }, `found ${moment(found)}`, live || ring.possible ? `, ${duration(found)} ago` : `, lasted ${duration(found - ring['over-ms'])}`),
      isDefaultSpace(ring.space) ? undefined : h('span', { class: 'space' }, spaceName(ring.space))),
    h('div', { class: 'body' },
      picture(ring.hops),
      ring.others > 0 ? h('p', { class: 'note' }, `${plural(ring.others, 'further client')} involved.`) : undefined,
      live && victim !== undefined ? h('p', { class: 'advice' }, advice(victim)) : undefined,
      h('div', { class: 'buttons' },
        h('button', { class: 'small', type: 'button', on: { click: () => copy(ticket(ring), 'text copied') } }, 'Copy as text'),
        copyJson(ring),
        h('button', { class: 'small', type: 'button', on: { click: () => printTicket(ring) } }, 'Print'),
        live && rights?.acts && victim !== undefined
          ? h('button', { class: 'small danger', type: 'button', on: { click: () => act(link, { release: victim.lock.request }, 'Break the deadlock', plain(victim.lock.names[0]), refresh) } }, 'Break it…')
          : undefined)));
}

/** Returns the lock that was granted last, by its fencing token: its loss costs least. */
function cheapest({ hops }) {
  const locks = hops.map((hop, index) => ({ lock: hop.by, waiter: hop.waits, holder: hops[(index + 1) % hops.length] })).filter(({ lock }) => lock?.token !== undefined);
  return locks.sort((a, b) => b.lock.token - a.lock.token)[0];
}

function advice({ lock, waiter }) {
  const [first] = lock.names;
  return ['To break it, release ', name(first, 40), ` of ${clientText(lock)}: it was held for ${duration(lock.ms)}, the shortest of them. `,
    waiter === undefined ? '' : `Then ${clientText(waiter)} is granted. `, 'In a terminal: ', h('span', { class: 'name' }, `navlocks release --force '${plain(first)}'`)];
}

/** Returns a description of the deadlock for a ticket. */
export function ticket(ring) {
  const { hops } = ring;
  const lines = hops.map((hop, index) => {
    const next = hops[(index + 1) % hops.length];
    const lock = hops[(index - 1 + hops.length) % hops.length].by;
    const who = hop.waits ?? lock;
    const holds = lock === undefined ? '' : ` ${lock.token === undefined ? 'wants' : 'holds'} ${lock.names.map((one) => `"${plain(one)}"`).join(', ')} (request ${lock.request}) and`;
    const waits = hop.waits === undefined ? ` waits until client ${next.client} ends, which it started` : ` waits for "${plain(hop.name?.[0] ?? '')}" since ${duration(hop.waits.ms)} (request ${hop.waits.request})`;
    return `${index + 1}. ${who === undefined ? `client ${hop.client}` : clientText(who)}${holds}${waits}`;
  });
  const victim = ring.possible ? undefined : cheapest(ring);
  const found = `${ring.possible ? 'Possible deadlock' : 'Deadlock'} of ${plural(hops.length, 'client')} in partition ${spaceName(ring.space)}, found ${exact(ring['found-ms'])}, ${ring['over-ms'] === undefined ? `lasting ${duration(ring['found-ms'])}` : `over ${exact(ring['over-ms'])}`}`;
  const way = victim === undefined ? [] : [`To break it: navlocks release --force '${plain(victim.lock.names[0])}', of ${clientText(victim.lock)}.`];
  return [found, ...lines, ...way, ''].join('\n');
}

function printTicket(ring) {
  const paper = h('pre', { id: 'paper' }, ticket(ring));
  const app = document.getElementById('app');
  app.hidden = true;
  document.body.append(paper);
  print();
  paper.remove();
  app.hidden = false;
}

// ---- the picture

/** The size of a picture, of its boxes, and of the gaps with an arrow and its label. */
const HEIGHT = 62;
const GAP = 54;
const sizes = () => (innerWidth < 560 ? { width: 340, box: 152, letters: 20 } : { width: 520, box: 200, letters: 26 });

/**
 * Returns the picture of a ring. Two boxes are side by side. More are in a column, in which no box
 * can hide an arrow; the last arrow leads back to the first box beside the column.
 */
function picture(hops) {
  if (hops.length === 0) return h('p', { class: 'note' }, 'Its clients wait for each other in several ways at once.');
  const size = sizes();
  const shown = hops.slice(0, 8);
  const count = shown.length;
  const label = `Ring of ${count}: ${shown.map((hop, index) => `${nameOf(hop, hops, index)} waits for ${plain(hop.name?.[0] ?? 'a process that it started')}`).join('; ')}`;
  const height = count <= 2 ? 210 : count * HEIGHT + (count - 1) * GAP + 8;
  const places = shown.map((_, index) => place(index, count, height, size));
  const wanted = (hop, index) => (index === 7 && hops.length > 8 ? `and ${hops.length - 8} more` : hop.name === undefined || hop.name.length === 0 ? 'a process that it started' : plain(hop.name[0]));
  return h('svg', { viewBox: `0 0 ${size.width} ${height}`, role: 'img', 'aria-label': label },
    shown.map((hop, index) => arrow(route(places[index], places[(index + 1) % count], count, size), cut(wanted(hop, index), 20))),
    shown.map((hop, index) => box(places[index], hop, hops, index, size)));
}

/** Returns the centre of a box. */
function place(index, count, height, { width, box: wide }) {
  if (count === 1) return { x: width / 2, y: height / 2 + 24 };
  if (count === 2) return { x: index === 0 ? wide / 2 + 4 : width - wide / 2 - 4, y: height / 2 };
  return { x: wide / 2 + 4, y: 4 + HEIGHT / 2 + index * (HEIGHT + GAP) };
}

/** Returns the path of an arrow, the place and angle of its point, and the centre of its label. */
function route(from, to, count, { width, box: wide }) {
  const [top, bottom] = [from.y - HEIGHT / 2, from.y + HEIGHT / 2];
  if (count === 1) return curve({ x: from.x - 50, y: top }, { x: from.x, y: top - 119 }, { x: from.x + 50, y: top - 7 }, 90);
  if (count === 2) {
    const control = { x: width / 2, y: from.y + (from.x < to.x ? -132 : 132) };
    const end = edge(to, control, wide, 8);
    return curve(edge(from, control, wide, 2), control, end, (Math.atan2(end.y - control.y, end.x - control.x) * 180) / Math.PI);
  }
  if (from.y < to.y) {
    const end = { x: to.x, y: to.y - HEIGHT / 2 - 8 };
    return { path: `M ${from.x} ${bottom} L ${end.x} ${end.y}`, end, angle: 90, middle: { x: from.x, y: (bottom + end.y) / 2 } };
  }
  const [right, lane] = [from.x + wide / 2, width - 82];
  const end = { x: right + 8, y: to.y };
  return { path: `M ${right} ${from.y} H ${lane - 14} Q ${lane} ${from.y} ${lane} ${from.y - 14} V ${to.y + 14} Q ${lane} ${to.y} ${lane - 14} ${to.y} H ${end.x}`, end, angle: 180, middle: { x: lane, y: (from.y + to.y) / 2 } };
}

function curve(start, control, end, angle) {
  const middle = { x: start.x / 4 + control.x / 2 + end.x / 4, y: start.y / 4 + control.y / 2 + end.y / 4 };
  return { path: `M ${start.x} ${start.y} Q ${control.x} ${control.y} ${end.x} ${end.y}`, end, angle, middle };
}

/** Returns the point, `gap` outside a box, where the line from its centre leaves it. */
function edge(centre, towards, wide, gap) {
  const dx = towards.x - centre.x;
  const dy = towards.y - centre.y;
  const scale = Math.min(wide / 2 / Math.max(Math.abs(dx), 0.001), HEIGHT / 2 / Math.max(Math.abs(dy), 0.001));
  const length = Math.hypot(dx, dy);
  return { x: centre.x + dx * scale + (dx / length) * gap, y: centre.y + dy * scale + (dy / length) * gap };
}

function arrow({ path, end, angle, middle }, wanted) {
  const width = wanted.length * 7 + 14;
  return h('g', {},
    h('path', { class: 'arrow', d: path }),
    h('path', { class: 'point', d: 'M 7 0 L -3 -5 L -3 5 Z', transform: `translate(${end.x} ${end.y}) rotate(${angle})` }),
    h('rect', { class: 'plate', x: middle.x - width / 2, y: middle.y - 11, width, height: 22, rx: 11 }),
    h('text', { class: 'mono', x: middle.x, y: middle.y + 4, 'text-anchor': 'middle' }, wanted));
}

function nameOf(hop, hops, index) {
  const lock = hops[(index - 1 + hops.length) % hops.length].by;
  const entry = hop.waits ?? lock;
  return entry?.tag ? plain(entry.tag) : entry?.pid === undefined ? `client ${hop.client}` : `pid ${entry.pid}`;
}

function box({ x, y }, hop, hops, index, { box: width, letters }) {
  const lock = hops[(index - 1 + hops.length) % hops.length].by;
  const entry = hop.waits ?? lock;
  const id = [entry?.pid === undefined ? undefined : `pid ${entry.pid}`, `client ${hop.client}`].filter(Boolean).join(' · ');
  return h('g', { transform: `translate(${x - width / 2} ${y - HEIGHT / 2})` },
    h('rect', { class: 'box', width, height: HEIGHT, rx: 9 }),
    h('text', { x: width / 2, y: 20, 'text-anchor': 'middle', 'font-weight': 600 }, cut(nameOf(hop, hops, index), 24)),
    h('text', { class: 'soft', x: width / 2, y: 36, 'text-anchor': 'middle' }, cut(id, 28)),
    h('text', { class: 'mono', x: width / 2, y: 52, 'text-anchor': 'middle' }, lock === undefined ? '' : cut(`${lock.token === undefined ? 'wants' : 'holds'} ${plain(lock.names[0])}`, letters)));
}

const cut = (value, max) => (value.length <= max ? value : `${value.slice(0, max - 1)}…`);
