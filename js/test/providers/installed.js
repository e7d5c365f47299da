// navigator.locks as install() puts it in place.

import { install } from 'navlocks';

install(globalThis);

const { LockManager, Lock, navigator } = globalThis;

export const provider = { locks: navigator.locks, LockManager, Lock, navigator, global: globalThis, extensions: true, ordered: true, resists: true };
