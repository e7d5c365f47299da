// The frame of the dashboard: the current view, the age of its data, and the connection.

import * as clients from './clients.js';
import * as deadlocks from './deadlocks.js';
import { h, morph } from './dom.js';
import * as events from './events.js';
import { duration, plain } from './format.js';
import { DOWN, Link, REFUSED, UP } from './link.js';
import * as names from './overview.js';
import { link as linkTo, route, spaceName, spaceOf, spaceQuery, text } from './parts.js';
import * as queue from './queue.js';
import * as time from './time.js';
import * as tree from './tree.js';

const VIEWS = { names, name: queue, blocking: tree, deadlocks, time, clients, events };
const TABS = [['names', 'Names'], ['blocking', 'Blocking'], ['deadlocks', 'Deadlocks'], ['time', 'Time'], ['clients', 'Clients'], ['events', 'Events']];
const KEYS = { 1: 'names', 2: 'blocking', 3: 'deadlocks', 4: 'time', 5: 'clients', 6: 'events' };

/** The shortest time between two queries of the page. */
const REFRESH_MS = 1000;
/** The time between two queries for deadlocks and partitions, in every view. */
const SUMMARY_MS = 3000;
/** The longest time from the release of the pointer to its click. */
const CLICK_MS = 100;

const app = document.getElementById('app');

let at = route();
let data;
/** The view and the query that the data answers. */
let dataOf;
let dataAt = 0;
let wrong;
let paused = false;
let rights;
let spaces = [];
let live = 0;
let isLoading = false;
let isStale = false;
/** True while a button of the pointer is down, and true if a drawing waits for its end. */
let isPressed = false;
let isDue = false;
let releasing;

const link = new Link(() => {
  if (link.state === UP) {
    events.forget();
    greet();
  }
  draw();
});

// ---- queries

async function greet() {
  rights = link.about;
  // A search for deadlocks takes long where many requests wait, so the view comes first.
  await refresh();
  loadSummary();
}

async function loadSummary() {
  if (link.state !== UP || paused || document.hidden) return;
  try {
    // The slots of a node change.
    if (rights?.node !== undefined) rights = await link.ask('service');
    const found = await link.ask('deadlocks');
    live = found.rings.filter(deadlocks.isLive).length;
    // An overview without a name has the list of partitions alone.
    spaces = (await link.ask({ overview: { space: { partition: '\0' } } })).spaces;
  } catch {
    // The next summary follows soon.
  }
}

async function refresh() {
  if (link.state !== UP) return;
  if (isLoading) {
    isStale = true;
    return;
  }
  isLoading = true;
  const { path, query } = at;
  const key = JSON.stringify(at);
  try {
    const found = await (VIEWS[path] ?? names).ask(link, query);
    if (key === JSON.stringify(at)) [data, dataOf, dataAt, wrong] = [found, key, Date.now(), undefined];
  } catch (error) {
    if (key === JSON.stringify(at)) wrong = error.message;
  }
  isLoading = false;
  draw();
  if (isStale) {
    isStale = false;
    refresh();
  }
}

setInterval(() => {
  if (!paused && !document.hidden) refresh();
}, REFRESH_MS);
setInterval(loadSummary, SUMMARY_MS);
setInterval(() => !isLoading && draw(), REFRESH_MS);
document.addEventListener('visibilitychange', () => !document.hidden && refresh());

// ---- navigation

function go(path, query, quietly) {
  history[quietly || path === at.path ? 'replaceState' : 'pushState'](null, '', linkTo(path, query));
  moved();
}

function moved() {
  const before = at.path;
  at = route();
  if (!Object.hasOwn(VIEWS, at.path)) at.path = 'names';
  if (before !== at.path) {
    [data, dataOf] = [undefined, undefined];
    scrollTo(0, 0);
  }
  refresh();
  draw();
}

addEventListener('hashchange', moved);
addEventListener('popstate', moved);
addEventListener('keydown', (event) => {
  const typing = event.target.matches?.('input, select, textarea') || document.querySelector('dialog[open]');
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (Object.hasOwn(KEYS, event.key)) go(KEYS[event.key], spaceQuery(spaceOf(at.query)));
  else if (event.key === 'p') pause();
  else if (event.key === '/') {
    document.querySelector('input[type=search]')?.focus();
    event.preventDefault();
  }
});

function pause() {
  paused = !paused;
  if (!paused) refresh();
  draw();
}

// ---- drawing

// A row that moves between the press and the release of the pointer would lose the click.
addEventListener('pointerdown', ({ target, button }) => {
  clearTimeout(releasing);
  isPressed = button === 0 && !target.closest('input, select');
});
for (const kind of ['click', 'pointercancel', 'contextmenu', 'blur']) addEventListener(kind, release);
// The click follows the release of the pointer, on a touch screen a moment later, or never.
addEventListener('pointerup', () => {
  releasing = setTimeout(release, CLICK_MS);
});

function release() {
  clearTimeout(releasing);
  isPressed = false;
  if (isDue) draw();
}

function draw() {
  isDue = isPressed;
  if (isDue) return;
  const view = VIEWS[at.path] ?? names;
  document.title = `${live > 0 ? `(${live}) ` : ''}${view.title} · navlocks`;
  const next = link.state === REFUSED ? login() : frame(view);
  if (app.firstChild === null) app.append(next);
  else morph(app.firstChild, next);
}

function frame(view) {
  return h('div', { id: 'frame' },
    h('a', { class: 'skip', href: '#main', on: { click: (event) => { event.preventDefault(); document.getElementById('main').focus(); } } }, 'Skip to the content'),
    h('header', { class: 'top' },
      h('a', { class: 'brand', href: '#/names' }, h('img', { src: '/dashboard/icon.svg', alt: '' }), 'navlocks'),
      h('nav', { class: 'tabs', 'aria-label': 'Views' }, TABS.map(([path, label]) =>
        h('a', { href: linkTo(path, spaceQuery(spaceOf(at.query))), 'aria-current': path === at.path || (path === 'names' && at.path === 'name') ? 'page' : undefined }, label, path === 'deadlocks' && live > 0 ? h('span', { class: 'count', 'aria-label': `${live} now` }, String(live)) : undefined))),
      h('div', { class: 'right' }, spaceChoice(), freshness(), h('button', { class: 'pause', type: 'button', 'aria-pressed': String(paused), title: 'Key: p', on: { click: pause } }, paused ? 'Resume' : 'Pause'))),
    banner(),
    node(),
    h('main', { id: 'main', tabindex: -1 }, content(view)));
}

function content(view) {
  const isOfView = data !== undefined && JSON.parse(dataOf).path === at.path;
  if (!isOfView) return h('p', { class: 'note' }, link.state === UP ? 'Loading …' : '');
  return view.render(data, { query: at.query, go, rights, link, refresh });
}

function banner() {
  if (link.state === DOWN) {
    const since = link.downSince === undefined ? '' : ` for ${duration(Date.now() - link.downSince)}`;
    return h('div', { class: 'banner bad', role: 'status' }, `The service is out of reach${since}. The page reconnects automatically and shows old data meanwhile.`);
  }
  if (wrong !== undefined) return h('div', { class: 'banner', role: 'status' }, wrong);
  return h('div', { hidden: true });
}

/** Returns the line about the node of a cluster, which shows the locks of its own slots. */
function node() {
  const { address, slots, owned, recovering = [] } = rights?.node ?? {};
  if (address === undefined) return h('div', { class: 'cluster', hidden: true });
  const title = 'No lock is granted here until the clients of the former owner have claimed their locks, or their leases have passed';
  const waits = recovering.length === 0 ? undefined : [' ', h('span', { class: 'pill warn', title }, `${recovering.length} recovering`), ` ${recovering.join(', ')}`];
  return h('div', { class: 'cluster' }, 'Node ', h('bdi', { class: 'id' }, text(address, 80)), ` · the locks of ${owned} of ${slots} slots`, waits);
}

function freshness() {
  const state = link.state === UP ? (paused ? 'paused' : '') : 'down';
  const old = dataAt === 0 ? 0 : Date.now() - dataAt;
  const text = link.state !== UP ? 'offline' : paused ? `paused, ${duration(old)} old` : old < 2500 ? 'live' : `${duration(old)} old`;
  return h('span', { class: `live ${state}`, title: `${link.about.service}. The data is ${duration(old)} old.` }, text);
}

function spaceChoice() {
  const chosen = spaceOf(at.query);
  const several = spaces.length > 1 || chosen !== undefined;
  if (!several || at.path === 'clients' || at.path === 'deadlocks') return undefined;
  const value = (space) => JSON.stringify([space.partition ?? '', space.tenant ?? '', space.origin ?? '']);
  const change = ({ target }) => {
    if (target.value === '') {
      go(at.path, { ...at.query, partition: undefined, tenant: undefined, origin: undefined, space: undefined });
      return;
    }
    const [partition, tenant, origin] = JSON.parse(target.value);
    go(at.path, { ...at.query, partition, tenant, origin, space: 'one' });
  };
  const options = spaces.map(({ space }) => h('option', { value: value(space) }, spaceName(space)));
  return h('select', { 'aria-label': 'Partition', id: 'space', value: chosen === undefined ? '' : value(chosen), on: { change } }, h('option', { value: '' }, at.path === 'time' ? 'Default partition' : 'All partitions'), options);
}

/** Returns the form for an access token. */
function login() {
  const { code, message } = link.refusal ?? {};
  const enter = (event) => {
    event.preventDefault();
    const token = document.getElementById('token').value.trim();
    if (token !== '') link.enter(token);
  };
  const needsToken = code === 'unauthorized';
  return h('main', { id: 'login', class: 'login card' },
    h('form', { class: 'body', on: { submit: enter } },
      h('div', { class: 'brand' }, h('img', { src: '/dashboard/icon.svg', alt: '' }), 'navlocks'),
      h('p', { class: 'note' }, needsToken ? 'This service requires an access token. The token stays in this tab and is sent to the service alone.' : plain(message ?? '')),
      needsToken ? [h('input', { id: 'token', type: 'password', 'aria-label': 'Access token', placeholder: 'Access token', autocomplete: 'off' }), sessionStorage.getItem('navlocks.key') ? h('p', { class: 'wrong', role: 'alert' }, 'The service does not know this token.') : undefined, h('button', { class: 'main', type: 'submit' }, 'Open the dashboard')] : undefined));
}

link.begin();
draw();
