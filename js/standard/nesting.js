// Requests within held locks: the lock in whose callback a request is made, and the outer locks
// under which a request needs no other.

import { some } from '../internal/lists.js';

/** The entry whose callback runs now, until the callback awaits. */
let current;

/** Returns the entry in whose callback the program runs, where that is known. */
export function runningEntry(host) {
  return current ?? host.nesting?.outer();
}

/** Runs work in whose async context all requests are made within a lock. */
export function runWithin(entry, work) {
  const { nesting } = entry.host;
  return nesting === undefined ? work() : nesting.run(entry, work);
}

/** Invokes the callback of a request that joins the hold of `entry`. */
export function join(entry, callback) {
  return runWithin(entry, () => invokeWithin(entry, callback, entry.host.lock(entry)));
}

/** Invokes a callback. Requests that it makes before it awaits are made within the lock. */
export function invokeWithin(entry, callback, lock) {
  const before = current;
  current = entry;
  try {
    return callback(lock);
  } finally {
    current = before;
  }
}

/** Returns the nearest entry, from `entry` outwards, that holds a lock through a transport. */
export function nearestHeld(entry, transport) {
  for (let outer = entry; outer !== undefined; outer = outer.outer) {
    // A chain of entries that are over would grow with each request that begins in a callback.
    while (outer.outer?.isOver) outer.outer = outer.outer.outer;
    if (outer.isHeldBy(transport)) return outer;
  }
  return undefined;
}

/** Returns the nearest held lock, from `entry` outwards, under which a request needs no other. */
export function covering({ transport }, entry, scope, request) {
  for (let outer = nearestHeld(entry, transport); outer !== undefined; outer = nearestHeld(outer.outer, transport)) {
    if (holdersOf(outer) <= holdersOf(request) && hasNames(outer.scope, scope)) return outer;
  }
  return undefined;
}

/** The largest number of holders, itself included, beside which a lock is held. */
function holdersOf({ mode, limit }) {
  return limit ?? (mode === 'shared' ? Infinity : 1);
}

function hasNames(outer, scope) {
  if (typeof outer === 'string') return outer === scope;
  if (typeof scope === 'string') return some(outer, (name) => name === scope);
  return !some(scope, (name) => !some(outer, (known) => known === name));
}
