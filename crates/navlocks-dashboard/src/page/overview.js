// The view of all names in use, names with waiters first.

import { h } from './dom.js';
import { count, plural } from './format.js';
import { copyJson, empty, isDefaultSpace, left, level, link, mode, nameLink, sharing, shortAge, spaceName, spaceOf, clientOf } from './parts.js';

const ROWS = 50;

const ORDERS = { wait: 'Longest wait', queue: 'Waiting', hold: 'Held for', name: 'Name' };

export const title = 'Names';

function filterOf({ name = '', tag = '', client = '', mode: wanted, waiting, order, page, ...query }) {
  return {
    space: spaceOf(query),
    name,
    tag,
    client,
    mode: wanted === 'shared' || wanted === 'exclusive' ? wanted : undefined,
    'waiting-ms': Math.round((Number(waiting) || 0) * 1000),
    order: Object.hasOwn(ORDERS, order) ? order : 'wait',
    skip: (Math.max(1, Number(page) || 1) - 1) * ROWS,
  };
}

export const ask = (link_, query) => link_.ask({ overview: filterOf(query) });

export function render(data, { query, go }) {
  return [h('h1', { class: 'sr' }, 'Names in use'), facts(data), filters(query, go), table(data, query, go)];
}

function facts({ held, pending, names, rows }) {
  const longest = Math.max(0, ...rows.map((row) => row['wait-ms']));
  return h(
    'div',
    { class: 'facts' },
    fact(count(held), held === 1 ? 'lock held' : 'locks held'),
    fact(count(pending), pending === 1 ? 'request waits' : 'requests wait', pending > 0 && level(longest)),
    fact(longest > 0 ? shortAge(longest) : '–', 'longest wait here', level(longest)),
    fact(count(names), names === 1 ? 'name in use' : 'names in use'),
  );
}

const fact = (value, label, kind) => h('div', { class: `fact ${kind || ''}` }, h('b', {}, value), h('span', {}, label));

function filters(query, go) {
  const set = (key) => ({ target }) => go('names', { ...query, [key]: target.value, page: undefined });
  const field = (key, label, kind = 'tight') =>
    h('div', { class: kind }, h('input', { type: 'search', 'aria-label': label, placeholder: label, value: query[key] ?? '', id: `filter-${key}`, on: { input: set(key) } }));
  return h(
    'form',
    { class: 'filters', role: 'search', on: { submit: (event) => event.preventDefault() } },
    field('name', 'Search names', 'grow'),
    field('tag', 'Tag'),
    field('client', 'Client, session, pid …'),
    h('select', { 'aria-label': 'Mode', value: query.mode ?? '', on: { change: set('mode') } }, h('option', { value: '' }, 'Any mode'), h('option', { value: 'exclusive' }, 'Exclusive'), h('option', { value: 'shared' }, 'Shared')),
    h('select', { 'aria-label': 'Waiting longer than', value: query.waiting ?? '', on: { change: set('waiting') } },
      h('option', { value: '' }, 'Any wait'),
      [1, 5, 30, 300].map((seconds) => h('option', { value: seconds }, `Waiting ${seconds < 60 ? `${seconds} s` : `${seconds / 60} min`} or more`))),
  );
}

function table(data, query, go) {
  const { rows, matching, names } = data;
  const filtered = ['name', 'tag', 'client', 'mode', 'waiting'].some((key) => query[key]);
  const page = Math.max(1, Number(query.page) || 1);
  if (rows.length === 0 && page === 1) {
    return h('section', { class: 'card' }, filtered
      ? empty('No name matches', `${plural(names, 'name')} in use; none matches the filter.`)
      : empty('Nothing is held', 'Locks appear here as soon as a program requests one. Try ', h('code', {}, 'navlocks run demo -- sleep 60')));
  }
  const several = rows.some((row) => !isDefaultSpace(row.space));
  const order = query.order ?? 'wait';
  const head = (key, label, kind) =>
    h('th', { class: kind, 'aria-sort': key === order ? 'descending' : undefined, scope: 'col' },
      key === undefined ? label : h('button', { type: 'button', on: { click: () => go('names', { ...query, order: key, page: undefined }) } }, label, key === order ? ' ↓' : ''));
  return h(
    'section',
    { class: 'card' },
    h('header', {}, h('h2', {}, filtered ? `${plural(matching, 'name')} of ${count(names)}` : plural(names, 'name')),
      h('span', { class: 'note' }, matching > ROWS ? `${(page - 1) * ROWS + 1}–${(page - 1) * ROWS + rows.length}` : ''),
      h('span', { class: 'end' }, copyJson(data))),
    h('table', {},
      h('thead', {}, h('tr', {}, head('name', 'Name'), head('queue', 'Waiting', 'num'), head('wait', 'Longest wait', 'num'), head(undefined, 'Held by'), head('hold', 'Held for', 'num wide'), head(undefined, 'Mode', 'wide'))),
      h('tbody', {}, rows.map((row) => rowOf(row, several)))),
    matching > ROWS ? pages(page, Math.ceil(matching / ROWS), query) : undefined,
  );
}

function rowOf(row, several) {
  const { first, held, waiting } = row;
  const holder = held === 0 ? h('span', { class: 'none' }, 'not held: a waiter needs other names too') : clientOf(first);
  return h(
    'tr',
    { key: JSON.stringify([row.space, row.name, row.length]), class: waiting > 0 ? level(row['wait-ms']) : '' },
    h('td', { class: 'lead' }, nameLink(row.name, { space: row.space, request: first.request, length: row.length }), several ? h('div', { class: 'space' }, spaceName(row.space)) : undefined),
    h('td', { class: `num ${waiting === 0 ? 'void' : ''}`, 'data-label': 'waiting' }, waiting === 0 ? h('span', { class: 'none' }, '–') : count(waiting)),
    h('td', { class: `num heat ${waiting === 0 ? 'void' : ''}`, 'data-label': 'longest' }, waiting === 0 ? h('span', { class: 'none' }, '–') : shortAge(row['wait-ms'])),
    h('td', { class: 'lead' }, holder, held > 1 ? h('span', { class: 'space' }, ` and ${count(held - 1)} more`) : undefined),
    h('td', { class: 'num wide' }, held === 0 ? h('span', { class: 'none' }, '–') : [shortAge(row['hold-ms']), left(first)]),
    h('td', { class: 'wide' }, h('span', { class: `mode ${mode(first)}` }, sharing(first, held))),
  );
}

function pages(page, last, query) {
  const to = (number, label) => (number < 1 || number > last
    ? h('button', { type: 'button', disabled: true }, label)
    : h('a', { href: link('names', { ...query, page: number }) }, h('button', { type: 'button', tabindex: -1 }, label)));
  return h('nav', { class: 'pages', 'aria-label': 'Pages' }, `Page ${count(page)} of ${count(last)}`, to(page - 1, '‹ Back'), to(page + 1, 'Next ›'));
}
