// navlocks for Node: `navigator.locks` for all threads of a process, and through a service.

export { connect, ExtendedLock, install, Lock, LockHandle, LockManager, locks, uninstall } from './node.js';
