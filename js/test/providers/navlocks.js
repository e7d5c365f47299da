// The package itself.

import { Lock, LockManager, locks } from 'navlocks';

export const provider = { locks, LockManager, Lock, extensions: true, ordered: true, resists: true };
