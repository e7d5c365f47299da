// The provider of a realm whose functions refuse every receiver but their global object, as in
// browsers.

import { createExtended } from '../../extended/extended.js';
import { createInterfaces } from '../../standard/locks.js';
import { transportOf } from '../../native/native.js';

const { setTimeout, clearTimeout } = globalThis;
const realm = Object.create(globalThis, {
  setTimeout: { value: own(setTimeout) },
  clearTimeout: { value: own(clearTimeout) },
});

function own(work) {
  return function checked(...given) {
    if (this !== undefined && this !== realm) throw new TypeError('Illegal invocation');
    return work(...given);
  };
}

const interfaces = createInterfaces(realm);
const { createLocks, LockHandle } = createExtended(interfaces);
const { LockManager, Lock } = interfaces;
const openHost = (partition) => ({ openPartition: openHost, transport: transportOf(partition) });
const locks = createLocks(openHost(''));

export const provider = { locks, extended: locks, LockManager, Lock, LockHandle, ordered: true };
