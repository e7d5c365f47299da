// The provider of the platform's own navigator.locks.

const { navigator } = globalThis;
const { locks } = navigator;

// Some platforms lack the global interfaces of WebIDL.
const LockManager = globalThis.LockManager ?? locks.constructor;
const Lock = globalThis.Lock ?? (await locks.request('the class of a lock', (lock) => lock.constructor));

export const provider = { locks, LockManager, Lock, navigator, global: globalThis };
