// The view of events, with a filter.

import { h } from './dom.js';
import { count, exact, moment } from './format.js';
import { copyJson, empty, isDefaultSpace, mode, names, sharing, spaceName, spaceOf, text, clientOf } from './parts.js';

const KEPT = 300;

let events = [];
let last = 0;
let missed = false;
let of = '';

export const title = 'Events';

export async function ask(link, { name = '', tag = '', client = '', mode: wanted, ...query }) {
  const filter = { space: spaceOf(query), name, tag, client, mode: wanted || undefined };
  const key = JSON.stringify(filter);
  if (key !== of) {
    [events, last, missed, of] = [[], 0, false, key];
  }
  const data = await link.ask({ events: { after: last, filter } });
  if (key !== of) return undefined;
  // The numbers start again after a restart of the service.
  if (data.last < last) events = [];
  const now = Date.now();
  missed = data.missed;
  last = data.last;
  events = [...data.events.reverse().map((event) => ({ ...event, at: now - event['ago-ms'] })), ...events].slice(0, KEPT);
  return events;
}

export function forget() {
  of = '';
}

export function render(data, { query, go }) {
  const set = (key) => ({ target }) => go('events', { ...query, [key]: target.value });
  const field = (key, label, kind) => h('div', { class: kind }, h('input', { type: 'search', id: `filter-${key}`, 'aria-label': label, placeholder: label, value: query[key] ?? '', on: { input: set(key) } }));
  return [
    h('div', { class: 'head' }, h('h1', {}, 'Events'), h('span', { class: 'note' }, 'The newest come first. Pause to read.')),
    h('form', { class: 'filters', role: 'search', on: { submit: (event) => event.preventDefault() } }, field('name', 'Search names', 'grow'), field('tag', 'Tag', 'tight'), field('client', 'Client, session, pid …', 'tight')),
    missed ? h('p', { class: 'note' }, 'Some events are missing: there were too many.') : undefined,
    h('section', { class: 'card' },
      data.length === 0
        ? empty('No events yet', 'Requests, grants, releases, losses and actions of operators appear here as they happen.')
        : [h('header', {}, h('h2', {}, `${count(data.length)} latest`), h('span', { class: 'end' }, copyJson(data))),
          h('table', { class: 'dense' },
            h('thead', {}, h('tr', {}, ['Time', 'Event', 'Names', 'Client'].map((label) => h('th', { scope: 'col' }, label)), h('th', { class: 'wide', scope: 'col' }, 'Mode'), h('th', { class: 'wide', scope: 'col' }, 'Request'))),
            h('tbody', {}, data.slice(0, 120).map(rowOf)))]),
  ];
}

function rowOf({ number, at, what, entry, author, space }) {
  return h('tr', { key: number },
    h('td', { class: 'when' }, h('time', { title: exact(Date.now() - at), datetime: exact(Date.now() - at) }, moment(Date.now() - at))),
    h('td', {}, h('span', { class: `what ${what.split(' ')[0]}` }, what), author === undefined ? undefined : h('span', { class: 'space' }, ' by ', text(author, 40))),
    h('td', { class: entry === undefined ? 'void' : '' }, entry === undefined ? '' : names(entry, space), isDefaultSpace(space) ? undefined : h('span', { class: 'space' }, ` ${spaceName(space)}`)),
    h('td', { class: entry === undefined ? 'void' : '' }, entry === undefined ? '' : clientOf(entry)),
    h('td', { class: 'wide' }, entry === undefined ? '' : h('span', { class: `mode ${mode(entry)}` }, sharing(entry))),
    h('td', { class: 'wide' }, entry?.request ?? ''));
}
