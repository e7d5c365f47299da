// The provider of navigator.locks after install().

import { install, locks as extended } from 'navlocks';

install(globalThis);

const { LockManager, Lock, navigator } = globalThis;

export const provider = { locks: navigator.locks, extended, LockManager, Lock, navigator, global: globalThis, ordered: true, resists: true };
