// The provider of the package's own `locks`.

import { Lock, LockHandle, LockManager, locks } from 'navlocks';

export const provider = { locks, extended: locks, LockManager, Lock, LockHandle, ordered: true, resists: true };
