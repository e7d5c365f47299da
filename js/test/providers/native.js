// The platform's own navigator.locks.

const { LockManager, Lock, navigator } = globalThis;

export const provider = { locks: navigator.locks, LockManager, Lock, navigator };
