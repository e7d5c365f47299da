// The older drafts of the Web Locks API, over any locks of this package and in the same lock space.
//
//   requestFlag(scope, mode, { timeout })                          the first draft
//   requestLock(scope, options), requestLock(scope, callback, …)   the second, and the explainer
//   acquire(name, [options,] callback), forceRelease(name), query()  the third
//
// New code should use the locks themselves.

import { createAcquire } from './acquire.js';
import { KeptWeakMap } from '../internal/collections.js';
import { environmentOf, installInterfaces } from '../standard/locks.js';
import { createStyles } from './styles.js';

export { Flag, Lock } from './styles.js';

const lineages = new KeptWeakMap();

/**
 * Returns the older APIs over these locks: of this process, of `connect()` or of `install()`.
 * `auto`, `explicit` and `scoped` have the explainer's functions, one for each release style.
 */
export function lineageOf(locks) {
  const environment = environmentOf(locks);
  if (environment === undefined) {
    throw new TypeError('lineageOf() needs locks of this package: what connect() resolved with, or what install() returned');
  }
  if (!lineages.has(locks)) lineages.set(locks, Object.freeze({ ...createAcquire(environment), ...createStyles(environment) }));
  return lineages.get(locks);
}

/**
 * Defines `acquire` and `forceRelease` on `navigator.locks`, which it installs if there is none.
 * Defines `requestLock` and `requestFlag` on the global object, and returns the lineage.
 */
export function installLineage(target, locks) {
  const lineage = lineageOf(locks);
  if (target.navigator?.locks === undefined) {
    const { host, interfaces } = environmentOf(locks);
    installInterfaces(target, interfaces, () => host);
  }
  const { acquire, forceRelease, requestFlag, requestLock } = lineage;
  define(target.navigator.locks, { acquire, forceRelease });
  define(target, { requestFlag, requestLock });
  return lineage;
}

function define(object, operations) {
  for (const [name, value] of Object.entries(operations)) {
    Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
  }
}
