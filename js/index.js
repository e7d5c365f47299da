// navlocks for Node: `navigator.locks` within a process, for its main thread and all its workers, and through a service.

export { connect, ExtendedLock, install, Lock, LockHandle, LockManager, locks, uninstall } from './node.js';
