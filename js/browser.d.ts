// navlocks for browsers: `navigator.locks` through a service, for pages and all kinds of workers.

import type { ConnectOptions, LockManager, Locks, ServiceAddress, ServiceLocks } from './index.js';

export {
  type ConnectOptions,
  type DeadlockCause,
  ExtendedLock,
  type ExtendedLockOptions,
  type HeldLockDetails,
  Lock,
  type LockConnection,
  type LockDetails,
  type LockEvent,
  type LockEventGap,
  type LockEvents,
  type LockEventsOptions,
  type LockErrorCause,
  LockHandle,
  type LockInfo,
  LockManager,
  type LockManagerSnapshot,
  type LockMode,
  type LockOptions,
  type LockSpace,
  type Locks,
  type LossCause,
  type Refusal,
  type RequestId,
  type Scope,
  type ServiceAddress,
  type ServiceLocks,
} from './index.js';

export interface PageConnectOptions extends ConnectOptions {
  /**
   * False: a frame below another site shares locks with its own site's pages. By default it has a
   * partition of its own.
   */
  partitioned?: boolean;
  /**
   * `also`: a request must hold the browser's own lock of that name too, so it excludes code that
   * uses the browser's locks. `replaced`, the default, ignores the browser's locks.
   */
  native?: 'replaced' | 'also';
}

/**
 * The locks of a service, `ws://host:port` or `wss://host:port`, or of a cluster,
 * `wss://n1:7400,n2:7400`: resolves when it is reached, rejects when it is not.
 */
export function connect(url: ServiceAddress, options?: PageConnectOptions): Promise<ServiceLocks>;

/**
 * Refuses every call with a NotSupportedError: a page has no locks of a process. Exported for code
 * that Node loads too.
 */
export const locks: Locks;

/** The options of `connect()`, with the address of the service among them. */
export type InstallOptions = PageConnectOptions & { url: ServiceAddress };

/**
 * Defines `navigator.locks`, `LockManager` and `Lock` as WebIDL would, and returns the manager.
 * With options of `connect()` requests wait for the connection, and `StorageBucket` gets `locks`.
 */
export function install(target: object | undefined, locks: LockManager | InstallOptions): LockManager;

/** Undoes the last `install()` on a global object. Resolves when its connection is closed. */
export function uninstall(target?: object): Promise<void>;
