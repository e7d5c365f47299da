// The platform's own navigator.locks.

const { navigator } = globalThis;
const { locks } = navigator;

// Not every platform has the interfaces where WebIDL puts them.
const LockManager = globalThis.LockManager ?? locks.constructor;
const Lock = globalThis.Lock ?? (await locks.request('the class of a lock', (lock) => lock.constructor));

export const provider = { locks, LockManager, Lock, navigator, global: globalThis };
