// The view of time: the last ten minutes of one partition, and the locks held at a chosen moment.

import { h } from './dom.js';
import { count, duration, exact, moment, plain, plural, short } from './format.js';
import { copyJson, empty, link, mode, name, names, sharing, spaceName, spaceOf, clientOf } from './parts.js';

const WINDOW_MS = 60_000;

export const title = 'Time';

export async function ask(link_, query) {
  const space = spaceOf(query) ?? {};
  const ago = Number(query.ago) || 0;
  const data = await link_.ask({ time: { space, 'ago-ms': ago, 'window-ms': WINDOW_MS } });
  return { ...data, ago, space };
}

export function render(data, { query, go }) {
  const { waiting, ago, space } = data;
  if (waiting.length === 0) {
    return [heading(space, ''), h('section', { class: 'card' }, empty('This partition has no record', 'The service records while a dashboard is open, and always with ', h('code', {}, 'navlocks serve --dashboard'), '.'))];
  }
  const note = `recorded for ${duration(data['recorded-ms'])}`;
  return [heading(space, note, data), overTime(data, query, go), atMoment(data, ago), lanes(data, ago), heat(data), h('div', { class: 'two' }, histogram('Waiting times', data['wait-counts']), histogram('Holding times', data['hold-counts']))];
}

const heading = (space, note, data) => h('div', { class: 'head' }, h('h1', {}, 'The last ten minutes'), h('span', { class: 'note' }, `partition ${spaceName(space)}${note === '' ? '' : `, ${note}`}`), data === undefined ? undefined : h('span', { class: 'end' }, copyJson(data)));

// ---- waiters over time

/** Returns the size of the plot. On a narrow screen it shrinks and letters keep their size. */
const plotOf = () => ({ width: innerWidth < 760 ? 340 : 1000, height: 150, left: innerWidth < 760 ? 34 : 44, bottom: 22 });

function overTime(data, query, go) {
  const { waiting, held, ago } = data;
  const PLOT = plotOf();
  const bucket = data['bucket-ms'];
  const span = 300 * bucket;
  const top = niceTop(Math.max(1, ...waiting, ...held));
  const right = PLOT.width;
  const inner = { width: right - PLOT.left, height: PLOT.height - PLOT.bottom };
  const x = (before) => right - (Math.max(0, before) / span) * inner.width;
  const y = (value) => 6 + (inner.height - 6) * (1 - value / top);
  const before = (index) => (waiting.length - 1 - index) * bucket;
  const steps = (values) => values.map((value, index) => `${x(before(index) + bucket)} ${y(value)} ${x(before(index))} ${y(value)}`).join(' L ');
  const oldest = x(before(0) + bucket);
  const to = Math.min(ago + WINDOW_MS, span);
  const label = `Waiters over the last ${duration(data['recorded-ms'])}: ${count(Math.max(...waiting))} at most, ${count(waiting.at(-1))} now`;
  return h('section', { class: 'card' },
    h('header', {}, h('h2', {}, 'Waiting and held'), h('span', { class: 'legend end' }, key('k-wait', 'waiting'), key('k-held', 'held'))),
    h('div', { class: 'body' },
      h('svg', { class: 'plot', viewBox: `0 0 ${PLOT.width} ${PLOT.height}`, role: 'img', 'aria-label': label },
        [0, 0.5, 1].map((part) => [h('line', { class: 'grid', x1: PLOT.left, x2: right, y1: y(top * part), y2: y(top * part) }), h('text', { class: 'soft', x: PLOT.left - 8, y: y(top * part) + 4, 'text-anchor': 'end' }, count(Math.round(top * part)))]),
        h('rect', { class: 'window', x: x(to), y: 4, width: Math.max(2, x(ago) - x(to)), height: inner.height }),
        h('path', { class: 'area', d: `M ${oldest} ${y(0)} L ${steps(waiting)} L ${x(0)} ${y(0)} Z` }),
        h('path', { class: 'held-line', d: `M ${steps(held)}` }),
        h('line', { class: 'cursor', x1: x(ago), x2: x(ago), y1: 2, y2: inner.height + 4 }),
        (PLOT.width > 400 ? [0, 2, 4, 6, 8] : [0, 4, 8]).map((minutes) => h('text', { class: 'soft', x: x(minutes * 60_000), y: PLOT.height - 5, 'text-anchor': minutes === 0 ? 'end' : 'middle' }, minutes === 0 ? 'now' : `−${minutes} min`))),
      h('input', { class: 'slider', type: 'range', min: 0, max: 600, step: 1, value: 600 - Math.round(ago / 1000), id: 'ago', 'aria-label': 'The moment that is shown below', 'aria-valuetext': ago === 0 ? 'now' : `${duration(ago)} ago`, on: { input: ({ target }) => go('time', { ...query, ago: (600 - Number(target.value)) * 1000 || undefined }, true) } })));
}

const key = (kind, label) => h('span', {}, h('i', { class: kind }), label);

function niceTop(value) {
  const scale = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * scale).find((step) => step >= value);
}

// ---- locks and requests at the chosen moment

function atMoment({ moment: { held, waiting, spans }, 'lanes-ms': reach, 'recorded-ms': recorded, unseen = 0, space }, ago) {
  const moments = ago === 0 ? 'now' : `at ${moment(ago)}, ${duration(ago)} ago`;
  const dropped = ago > recorded ? 'The service recorded nothing at that time.' : ago > reach ? 'The service has dropped requests of that time, because there were too many later ones.' : '';
  const note = dropped === '' && unseen > 0 ? `${plural(unseen, 'live request')} not counted: there are too many.` : dropped;
  const isHeld = (span) => span['granted-ms'] >= ago;
  return h('section', { class: 'card' },
    h('header', {}, h('h2', {}, `Locks and waiters ${moments}`), h('span', { class: 'note', title: exact(ago) }, note)),
    spans.length === 0
      ? dropped === '' ? empty('No lock was held', ago === 0 ? 'No request holds a lock or waits.' : 'Move the slider to another moment.') : empty('Not known', dropped)
      : h('table', {}, h('tbody', {}, spans.map((span) => h('tr', { key: span.entry.request },
        h('td', {}, h('span', { class: `pill ${isHeld(span) ? 'good' : 'warn'}` }, isHeld(span) ? 'held' : 'waits')),
        h('td', {}, names(span.entry, space)),
        h('td', {}, clientOf(span.entry)),
        h('td', { class: 'wide' }, h('span', { class: `mode ${mode(span.entry)}` }, sharing(span.entry))),
        h('td', { class: 'num' }, `for ${duration(span[isHeld(span) ? 'granted-ms' : 'asked-ms'] - ago)}`))),
      held + waiting > spans.length ? h('tr', {}, h('td', { colspan: 5, class: 'note' }, `and ${count(held + waiting - spans.length)} more: ${count(held)} held, ${count(waiting)} waiting in all`)) : undefined)));
}

// ---- a lane for each client

const LANES = 24;

function lanes({ lanes: all, 'more-lanes': more, 'lanes-ms': reach, 'recorded-ms': recorded }, ago) {
  const width = 1000;
  const x = (before) => Math.min(width, Math.max(0, width - ((before - ago) / WINDOW_MS) * width));
  // A client can hold one lock and wait for another: held locks are above, waits below.
  const bar = (kind, from, to, label) => {
    const waits = kind.startsWith('waits');
    const left = x(from);
    const wide = Math.max(1.5, x(to) - left);
    return x(to) <= 0 || left >= width ? undefined : h('rect', { class: kind, x: left, y: waits ? 12 : 2, width: wide, height: waits ? 6 : 9, rx: 1.5 }, h('title', {}, label));
  };
  const shape = (span) => {
    const end = span['ended-ms'] ?? Math.min(ago, 0);
    const granted = span['granted-ms'];
    const what = span.entry.names.map(plain).join(', ');
    const waited = granted === undefined ? end : granted;
    return [
      span['asked-ms'] - waited > 5 ? bar(granted === undefined && span.lost ? 'waits lost' : 'waits', span['asked-ms'], waited, `${what}: waited ${duration(span['asked-ms'] - waited)}`) : undefined,
      granted === undefined ? undefined : bar(span.lost ? 'lost' : `holds ${mode(span.entry)}`, granted, end, `${what}: held ${duration(granted - end)}${span.lost ? ', then lost' : ''}`),
    ];
  };
  const visible = all.filter((lane) => lane.spans.some((span) => (span['ended-ms'] ?? 0) <= ago + WINDOW_MS && span['asked-ms'] >= ago));
  // Clients with several requests or waits come before those that hold one lock all the time.
  const isActive = ({ spans }) => spans.length > 1 || spans.some((span) => span['granted-ms'] === undefined || span['asked-ms'] - span['granted-ms'] > 5);
  visible.sort((a, b) => isActive(b) - isActive(a));
  const shown = visible.slice(0, LANES);
  const hidden = more + visible.length - shown.length;
  // Requests that ended earlier than this are not in a lane.
  const since = ({ spans, more: earlier = 0 }) => Math.min(reach < recorded ? reach : Infinity, earlier > 0 ? Math.max(...spans.map((span) => span['ended-ms'] ?? 0)) : Infinity);
  const isCut = (lane) => since(lane) < ago + WINDOW_MS;
  const cut = (lane) => {
    const why = lane.more > 0 ? `${plural(lane.more, 'earlier request')} not shown` : 'The service has dropped earlier requests';
    return isCut(lane) ? h('rect', { class: 'cut', x: 0, y: 0, width: x(since(lane)), height: 20 }, h('title', {}, why)) : undefined;
  };
  const notes = [hidden > 0 ? `${plural(hidden, 'further client')} not shown.` : '', shown.some(isCut) ? 'The newest requests are shown; where a lane is grey, earlier ones are left out.' : ''];
  return h('section', { class: 'card' },
    h('header', {}, h('h2', {}, ago === 0 ? 'The last minute, by client' : `The minute before ${moment(ago)}, by client`), h('span', { class: 'note' }, notes.filter(Boolean).join(' ')), h('span', { class: 'legend end' }, key('k-wait', 'waits'), key('k-held', 'holds'), key('k-shared', 'holds, shared'), key('k-lost', 'lost'))),
    visible.length === 0
      ? empty('No request in this minute', '')
      : h('div', { class: 'body' }, h('div', { class: 'lanes' }, shown.map((lane) => [
        h('a', { key: lane.client, class: 'who', href: link('clients', { client: lane.client }) }, lane.spans.find((span) => span.entry.tag)?.entry.tag ? plain(lane.spans.find((span) => span.entry.tag).entry.tag) : lane.pid === undefined ? `client ${lane.client}` : `pid ${lane.pid}`),
        h('svg', { key: lane.client, class: 'plot', viewBox: `0 0 ${width} 20`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${plural(lane.spans.length, 'request')} of client ${lane.client}${lane.more > 0 ? `, and ${count(lane.more)} earlier` : ''}` }, cut(lane), lane.spans.map(shape)),
      ]))));
}

// ---- heat and histograms

function heat({ heat: rows, 'heat-ms': cell, space }) {
  const most = Math.max(1, ...rows.flatMap(({ ms }) => ms));
  return h('section', { class: 'card' },
    h('header', {}, h('h2', {}, 'Names with most waiting'), h('span', { class: 'note' }, `each cell is ${duration(cell)}; the last one has the waits of now`)),
    rows.length === 0
      ? empty('No request waited', '')
      : h('div', { class: 'body' }, h('div', { class: 'strip' }, rows.map(({ name: value, ms: known }) => {
        // The strip has its full length from the start of the record.
        const ms = [...Array(Math.max(0, 30 - known.length)).fill(0), ...known];
        const sum = ms.reduce((all, one) => all + one, 0);
        return [
          h('a', { key: value, href: link('name', { name: value, ...space }) }, name(value, 28)),
          h('span', { key: value, class: 'cells', role: 'img', 'aria-label': `${plain(value)}: ${duration(sum)} of waiting` }, ms.map((one) => h('i', { title: one === 0 ? undefined : duration(one), tint: one === 0 ? undefined : `color-mix(in srgb, var(--warn) ${Math.round(18 + 82 * Math.sqrt(one / most))}%, var(--sunk))` }))),
          h('span', { key: `${value} sum`, class: 'num' }, short(sum)),
        ];
      }))));
}

function histogram(label, counts) {
  const last = counts.findLastIndex((one) => one > 0);
  const most = Math.max(1, ...counts);
  const shown = counts.slice(0, Math.max(12, last + 1));
  const wide = 400 / shown.length;
  const limit = (index) => short(2 ** index);
  return h('section', { class: 'card' },
    h('header', {}, h('h2', {}, label), h('span', { class: 'note end' }, plural(counts.reduce((sum, one) => sum + one, 0), 'request'))),
    last < 0
      ? empty('None yet', '')
      : h('div', { class: 'body' }, h('svg', { class: 'plot half', viewBox: '0 0 400 118', role: 'img', 'aria-label': `${label}: ${counts.map((one, index) => (one > 0 ? `${count(one)} below ${limit(index)}` : '')).filter(Boolean).join(', ')}` },
        h('line', { class: 'grid', x1: 0, x2: 400, y1: 96, y2: 96 }),
        shown.map((one, index) => {
          const high = one === 0 ? 0 : Math.max(2, (Math.log1p(one) / Math.log1p(most)) * 78);
          return [
            h('rect', { class: 'count-bar', x: index * wide + 1, y: 96 - high, width: wide - 2, height: high, rx: 2 }, h('title', {}, `${count(one)} below ${limit(index)}`)),
            one === most ? h('text', { class: 'soft', x: index * wide + wide / 2, y: 90 - high, 'text-anchor': 'middle' }, count(one)) : undefined,
            index % 3 === 0 ? h('text', { class: 'soft', x: index * wide + wide / 2, y: 113, 'text-anchor': 'middle' }, `<${limit(index)}`) : undefined,
          ];
        }))));
}
