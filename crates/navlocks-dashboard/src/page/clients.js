// The view of clients: sessions, their connections, and the rest of their leases.

import { act } from './acting.js';
import { h } from './dom.js';
import { count, duration, plural } from './format.js';
import { copyJson, empty, link, mode, nameLink, shortAge, stopped, text } from './parts.js';

const ROWS = 50;

export const title = 'Clients';

export function ask(link_, { client = '', page }) {
  return link_.ask({ clients: { client, skip: (Math.max(1, Number(page) || 1) - 1) * ROWS } });
}

const WAYS = { unix: 'Unix socket', tcp: 'TCP' };

export function render(data, { query, go, rights, link: link_, refresh }) {
  const { rows, count: all, matching, unclaimed = [] } = data;
  const page = Math.max(1, Number(query.page) || 1);
  return [
    h('div', { class: 'head' }, h('h1', {}, plural(all, 'session')), h('span', { class: 'note' }, 'Sessions without a connection come first: the service releases their locks when the lease ends.')),
    unclaimed.length > 0 ? h('section', { class: 'card' },
      h('header', {}, h('h2', {}, `${plural(unclaimed.length, 'session')} of an earlier service`), h('span', { class: 'note' }, 'The service was restarted. It reserves their locks until they reconnect or their lease ends.')),
      h('table', {}, h('tbody', {}, unclaimed.map(({ session, pid, held, 'left-ms': left }) => h('tr', { key: session },
        h('td', { 'data-label': 'Session' }, String(session)), h('td', {}, pid === undefined ? 'over TCP' : `pid ${pid}`), h('td', { class: 'num' }, plural(held, 'lock')),
        h('td', { class: 'num' }, left === undefined ? 'until its process ends' : `for ${duration(left)} at most`)))))) : undefined,
    h('form', { class: 'filters', role: 'search', on: { submit: (event) => event.preventDefault() } },
      h('div', { class: 'grow' }, h('input', { type: 'search', id: 'filter-client', 'aria-label': 'Client, session or pid', placeholder: 'A client such as 12.0, a session such as 12, or pid 4711', value: query.client ?? '', on: { input: ({ target }) => go('clients', { client: target.value }) } }))),
    h('section', { class: 'card' },
      rows.length === 0
        ? empty('No session matches', '')
        : [h('header', {}, h('h2', {}, query.client ? `${count(matching)} of ${count(all)}` : plural(all, 'session')), h('span', { class: 'end' }, copyJson(data))),
          h('table', {},
            h('thead', {}, h('tr', {}, ['Session', 'Program', 'Connection'].map((label) => h('th', { scope: 'col' }, label)), h('th', { class: 'num', scope: 'col' }, 'Held'), h('th', { class: 'num', scope: 'col' }, 'Waits'), h('th', { class: 'wide', scope: 'col' }, 'Locks and requests'), h('th', { class: 'num wide', scope: 'col' }, 'Last seen'), h('th', { scope: 'col' }, 'Lease left'), rights?.acts ? h('th', {}, h('span', { class: 'sr' }, 'Actions')) : undefined)),
            h('tbody', {}, rows.map((row) => rowOf(row, { rights, link: link_, refresh }))))],
      matching > ROWS ? h('nav', { class: 'pages', 'aria-label': 'Pages' }, `Page ${page} of ${count(Math.ceil(matching / ROWS))}`, page > 1 ? h('a', { href: link('clients', { ...query, page: page - 1 }) }, '‹ Back') : undefined, page * ROWS < matching ? h('a', { href: link('clients', { ...query, page: page + 1 }) }, 'Next ›') : undefined) : undefined),
  ];
}

function rowOf(row, { rights, link: link_, refresh }) {
  const { session, pid, tag, origin, tenant, way, connected, held, pending, entries = [] } = row;
  const program = [tag ? h('bdi', { class: 'tag' }, text(tag, 40)) : undefined, pid === undefined ? undefined : h('span', { class: 'id' }, `pid ${pid}`), origin ? h('bdi', { class: 'id' }, text(origin, 40)) : undefined, tenant ? h('span', { class: 'id' }, 'tenant ', text(tenant, 30)) : undefined].filter(Boolean);
  return h('tr', { key: session, class: connected ? '' : 'bad' },
    h('td', { 'data-label': 'Session' }, String(session), row.clients > 1 ? h('span', { class: 'space' }, ` · ${plural(row.clients, 'client')}`) : undefined),
    h('td', { class: 'who' }, program.length === 0 ? h('span', { class: 'none' }, 'unknown') : program.flatMap((part, index) => (index === 0 ? [part] : [' ', part])), stopped(row)),
    h('td', {}, WAYS[way] ?? way, ' ', connected ? undefined : h('span', { class: 'pill bad' }, 'lost')),
    h('td', { class: `num ${held === 0 ? 'void' : ''}`, 'data-label': 'holds' }, held === 0 ? h('span', { class: 'none' }, '–') : count(held)),
    h('td', { class: `num ${pending === 0 ? 'void' : ''}`, 'data-label': 'waits for' }, pending === 0 ? h('span', { class: 'none' }, '–') : count(pending)),
    h('td', { class: 'wide' }, entries.slice(0, 3).map((entry, index) => [index > 0 ? ', ' : '', nameLink(entry.names[0], { request: entry.request, max: 28 }), h('span', { class: `mode ${mode(entry)}` }, entry.token === undefined ? ' waits' : '')]), held + pending > 3 ? h('span', { class: 'space' }, ` and ${count(held + pending - 3)} more`) : undefined),
    h('td', { class: 'num wide' }, row['heard-ms'] < 1000 ? 'now' : [shortAge(row['heard-ms']), ' ago']),
    h('td', { class: `who ${row['lease-ms'] === undefined ? 'void' : ''}`, 'data-label': 'lease' }, lease(row)),
    rights?.acts ? h('td', { class: 'num' }, h('button', { class: 'small', type: 'button', on: { click: () => act(link_, { 'end-session': session }, `End session ${session}`, `session ${session}`, refresh) } }, 'End…')) : undefined);
}

function lease({ 'lease-ms': whole, 'left-ms': left }) {
  if (whole === undefined) return h('span', { class: 'none' }, 'ends with its connection');
  const part = Math.round((left / whole) * 100);
  return [duration(left), h('span', { class: `lease ${part < 34 ? 'low' : ''}`, title: `of ${duration(whole)}` }, h('i', { 'width%': part }))];
}
