// The blocking tree: root blockers first, waiters below them.

import { h } from './dom.js';
import { count, plural } from './format.js';
import { copyJson, empty, isDefaultSpace, level, nameLink, names, shortAge, spaceName, spaceOf, clientOf } from './parts.js';

export const title = 'Blocking';

export const ask = (link, query) => link.ask({ tree: { space: spaceOf(query) } });

export function render(data) {
  const { roots, count: all, skipped = [] } = data;
  const behind = roots.reduce((sum, root) => sum + root.behind, 0);
  return [
    h('div', { class: 'head' }, h('h1', {}, 'Blocked requests'),
      h('span', { class: 'note' }, roots.length === 0 ? '' : `${plural(all, 'client')} ${all === 1 ? 'blocks' : 'block'} ${plural(behind, 'request')}`)),
    skipped.length > 0 ? h('p', { class: 'wrong' }, `Too many requests to look at in ${skipped.map(spaceName).join(', ')}.`) : undefined,
    h('section', { class: 'card' },
      roots.length === 0
        ? empty('No request waits', 'Every request holds its lock. The page lists a client here as soon as it blocks a request.')
        : [h('header', {}, h('h2', {}, 'Root blockers'), h('span', { class: 'note' }, 'A root blocker waits for no lock, or is part of a deadlock. The largest queue comes first.'), h('span', { class: 'end' }, copyJson(data))),
          h('ul', { class: 'tree' }, roots.map((root) => nodeOf(root, true)))]),
  ];
}

function nodeOf(node, isRoot) {
  const { entry, space, behind, children = [], more = 0 } = node;
  const waitsOn = node['waits-on'] ?? [];
  return h('li', { key: entry.request },
    h('div', { class: 'node' },
      isRoot ? h('span', { class: `behind ${behind >= 10 ? 'bad' : ''}` }, `${count(behind)} behind`) : undefined,
      clientOf(entry),
      node.deadlocked ? h('a', { class: 'pill bad', href: '#/deadlocks' }, 'deadlock') : undefined,
      isRoot
        ? h('span', { class: 'note' }, waits(entry) ? 'wants ' : 'holds ', names(entry, space), ' for ', shortAge(entry.ms))
        : h('span', { class: 'note' }, 'waits for ', nameLink(waitsOn[0] ?? '', { space, request: entry.request }), ' ', h('span', { class: `pill ${level(entry.ms)}` }, shortAge(entry.ms)), behind > 0 ? h('b', {}, ` ${count(behind)} behind`) : undefined),
      isRoot && !isDefaultSpace(space) ? h('span', { class: 'space' }, spaceName(space)) : undefined),
    children.length > 0 ? h('ul', {}, children.map((child) => nodeOf(child, false)), more > 0 ? h('li', { class: 'node note' }, `and ${count(more)} more`) : undefined) : undefined);
}

const waits = (entry) => entry.token === undefined;
