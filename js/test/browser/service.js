// A provider of navlocks through a service. The address of the place has that of the service.

import { connect, install, LockHandle } from '../../browser.js';
import { Flag, installLineage, Lock as LineageLock } from '../../lineage/lineage.js';
import { startPlace } from './place.js';

const query = new URLSearchParams(location.search);
const [url, lease] = [query.get('service'), Number(query.get('lease'))];
const body = query.get('body') ?? undefined;
const locks = install(globalThis, { url, lease });
const { LockManager, Lock, navigator } = globalThis;
const common = { body, LockManager, Lock, LockHandle, navigator, global: globalThis, ordered: true };

/**
 * Returns the locks of install() for the standard's cases, and those of connect() for all others.
 */
async function createProvider() {
  const extended = await connect(url, { lease });
  if (body === undefined) return { ...common, locks, extended };
  const lineage = { ...installLineage(globalThis, extended), Lock: LineageLock, Flag };
  return { ...common, locks: extended, extended, lineage, installed: globalThis, indexedDB: globalThis.indexedDB };
}

// Not awaited: a worker receives its port only if it listens from its start.
startPlace(createProvider());
