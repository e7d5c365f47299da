// A place with the browser's own locks.

import { takePart } from './place.js';

const { LockManager, Lock, navigator } = globalThis;

takePart({ locks: navigator.locks, LockManager, Lock, navigator, global: globalThis });
