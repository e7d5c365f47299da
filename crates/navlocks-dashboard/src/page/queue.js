// The view of one name: its holders, a bar, and its waiters in queue order.

import { act } from './acting.js';
import { h } from './dom.js';
import { count, plain, plural } from './format.js';
import { age, copyJson, empty, isDefaultSpace, left, level, limit, link, mode, names, sharing, shortAge, spaceName, spaceOf, text, clientOf } from './parts.js';

const ROWS = 50;

export const title = 'Name';

export function ask(link_, { name, first, page, ...query }) {
  const of = first === undefined ? { name: name ?? '' } : { first };
  const space = spaceOf(query) ?? {};
  return link_.ask({ queue: { space, of, skip: (Math.max(1, Number(page) || 1) - 1) * ROWS } });
}

export function render(data, { query, rights, link: link_, refresh }) {
  if (data === null) {
    const wanted = query.first === undefined ? h('bdi', { class: 'name' }, text(query.name ?? '', 400)) : `The name of request ${query.first}`;
    return [
      h('div', { class: 'head' }, h('h1', {}, wanted)),
      h('section', { class: 'card' }, empty('The name is free', 'No request holds it or waits for it. The page shows the next request at once.')),
    ];
  }
  const { name, space, held, waiting, holders, waiters } = data;
  const whole = name.length > 300;
  return [
    h('div', { class: 'head' },
      h('h1', {}, h('bdi', { class: `name ${whole ? 'whole' : ''}` }, text(name, Infinity))),
      h('span', { class: 'note' }, holdersOf(held, holders), ', ', plural(waiting, 'waiter'), isDefaultSpace(space) ? '' : ` in ${spaceName(space)}`),
      h('span', { class: 'end' }, copyJson(data))),
    h('section', { class: 'card' },
      h('header', {}, h('h2', {}, 'The queue'), h('span', { class: 'note' }, 'Holders are solid. Waiters follow in queue order; shared neighbours are granted together.')),
      h('div', { class: 'body' }, h('div', { class: 'line' }, runs(holders, 'held'), more(held - holders.length), waiting > 0 ? h('span', { class: 'bar', role: 'separator' }) : undefined,
        runs(waiters.map(({ entry }) => entry), 'waits'), more(waiting - waiters.length - (Number(query.page ?? 1) - 1) * ROWS)))),
    holdersTable(holders, name, { rights, link: link_, refresh }),
    waiting > 0 ? waitersTable(waiters, data, query) : undefined,
  ];
}

/** Returns the number of holders, and of how many if they have limits. */
function holdersOf(held, holders) {
  const limits = holders.map(limit).filter((most) => most !== undefined);
  return limits.length === 0 ? plural(held, 'holder') : `${count(held)} of ${plural(Math.min(...limits), 'holder')}`;
}

const more = (number) => (number > 0 ? h('span', { class: 'note' }, `and ${count(number)} more`) : undefined);

/** Groups shared neighbours into one box. */
function runs(entries, kind) {
  const groups = [];
  for (const entry of entries) {
    const last = groups.at(-1);
    if (sharing(entry) === 'shared' && last?.shared) last.entries.push(entry);
    else groups.push({ shared: sharing(entry) === 'shared', entries: [entry] });
  }
  return groups.map(({ shared, entries: members }) => {
    const chips = members.map((entry) => chip(entry, kind));
    return shared && members.length > 1 ? h('div', { class: 'run' }, h('span', { class: 'label' }, `${count(members.length)} shared, together`), h('div', { class: 'members' }, chips)) : chips;
  });
}

function chip(entry, kind) {
  const others = entry.names.length + (entry.more ?? 0) - 1;
  return h('span', { key: entry.request, class: `chip ${kind} ${mode(entry)}`, title: `request ${entry.request}` },
    h('b', {}, entry.tag ? text(entry.tag, 40) : entry.pid === undefined ? `client ${entry.client}` : `pid ${entry.pid}`),
    h('small', {}, sharing(entry), ' · ', shortAge(entry.ms), entry.stopped ? ' · stopped' : '', others > 0 ? ` · tied to ${plural(others, 'other name')}` : ''));
}

function holdersTable(holders, name, { rights, link: link_, refresh }) {
  if (holders.length === 0) {
    return h('section', { class: 'card' }, empty('Not held', 'The first waiter needs other names at the same time, which are not free yet.'));
  }
  return h('section', { class: 'card' },
    h('header', {}, h('h2', {}, holders.length === 1 ? 'Held by' : 'Holders')),
    h('table', {},
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Client'), h('th', { scope: 'col' }, 'Mode'), h('th', { class: 'num', scope: 'col' }, 'Held for'), h('th', { class: 'num wide', scope: 'col' }, 'Token'), h('th', { class: 'wide', scope: 'col' }, 'Request'), h('th', { scope: 'col' }, 'Names'), rights?.acts ? h('th', {}, h('span', { class: 'sr' }, 'Actions')) : undefined)),
      h('tbody', {}, holders.map((entry) => h('tr', { key: entry.request },
        h('td', { class: 'lead' }, clientOf(entry)),
        h('td', {}, h('span', { class: `mode ${mode(entry)}` }, sharing(entry))),
        h('td', { class: 'num', 'data-label': 'for' }, age(entry.ms), left(entry)),
        h('td', { class: 'num wide' }, String(entry.token ?? '')),
        h('td', { class: 'wide' }, entry.request),
        h('td', {}, names(entry)),
        rights?.acts ? h('td', { class: 'num' },
          h('button', { class: 'small', type: 'button', on: { click: () => act(link_, { release: entry.request }, 'Release this lock', plain(name), refresh) } }, 'Release…'), ' ',
          h('button', { class: 'small', type: 'button', on: { click: () => act(link_, { steal: entry.request }, 'Steal this lock', plain(name), refresh) } }, 'Steal…')) : undefined)))));
}

function waitersTable(waiters, { waiting }, query) {
  const page = Math.max(1, Number(query.page) || 1);
  const last = Math.ceil(waiting / ROWS);
  return h('section', { class: 'card' },
    h('header', {}, h('h2', {}, plural(waiting, 'waiter')), h('span', { class: 'note' }, 'Hard blockers are held locks; soft blockers are earlier pending requests.')),
    h('table', {},
      h('thead', {}, h('tr', {}, h('th', { class: 'num', scope: 'col' }, '#'), h('th', { scope: 'col' }, 'Client'), h('th', { scope: 'col' }, 'Mode'), h('th', { class: 'num', scope: 'col' }, 'Waits for'), h('th', { class: 'num', scope: 'col' }, 'Hard'), h('th', { class: 'num', scope: 'col' }, 'Soft'), h('th', { class: 'wide', scope: 'col' }, 'First blocker'), h('th', { class: 'wide', scope: 'col' }, 'Names'))),
      h('tbody', {}, waiters.map(({ entry, hard, soft, by }, index) => h('tr', { key: entry.request, class: level(entry.ms) },
        h('td', { class: 'num' }, count((page - 1) * ROWS + index + 1)),
        h('td', {}, clientOf(entry)),
        h('td', {}, h('span', { class: `mode ${mode(entry)}` }, sharing(entry))),
        h('td', { class: 'num heat', 'data-label': 'waits' }, age(entry.ms)),
        h('td', { class: 'num', 'data-label': 'hard' }, count(hard)),
        h('td', { class: 'num', 'data-label': 'soft' }, count(soft)),
        h('td', { class: 'wide' }, by.length > 0 ? clientOf(by[0]) : ''),
        h('td', { class: 'wide' }, names(entry)))))),
    last > 1 ? h('nav', { class: 'pages', 'aria-label': 'Pages' }, `Page ${page} of ${count(last)}`,
      page > 1 ? h('a', { href: link('name', { ...query, page: page - 1 }) }, '‹ Back') : undefined,
      page < last ? h('a', { href: link('name', { ...query, page: page + 1 }) }, 'Next ›') : undefined) : undefined);
}
