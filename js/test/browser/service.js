// A place with navlocks, through a service. The address of that stands in the place's own.

import { connect, install, LockHandle } from '../../browser.js';
import { Flag, installLineage, Lock as LineageLock } from '../../lineage.js';
import { takePart } from './place.js';

const query = new URLSearchParams(location.search);
const [url, lease] = [query.get('service'), Number(query.get('lease'))];
const body = query.get('body') ?? undefined;
const locks = install(globalThis, { url, lease });
const { LockManager, Lock, navigator } = globalThis;
const common = { body, LockManager, Lock, LockHandle, navigator, global: globalThis, ordered: true };

/** The rows of the standard are about what install() puts in place, all others about what connect() gives. */
async function createProvider() {
  const extended = await connect(url, { lease });
  if (body === undefined) return { ...common, locks, extended };
  const lineage = { ...installLineage(globalThis, extended), Lock: LineageLock, Flag };
  return { ...common, locks: extended, extended, lineage, installed: globalThis, indexedDB: globalThis.indexedDB };
}

// Not awaited here: a worker hears its port only if it listens from the beginning.
takePart(createProvider());
