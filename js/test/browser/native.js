// A provider of the browser's own locks.

import { startPlace } from './place.js';

const { LockManager, Lock, navigator } = globalThis;

startPlace({ locks: navigator.locks, LockManager, Lock, navigator, global: globalThis });
