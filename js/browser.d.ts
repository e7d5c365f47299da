// navlocks for browsers: `navigator.locks` through a service, for pages, dedicated, shared and service workers.

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
  type Loss,
  type Refusal,
  type RequestId,
  type Scope,
  type ServiceAddress,
  type ServiceLocks,
} from './index.js';

export interface PageConnectOptions extends ConnectOptions {
  /** False lets a frame below another site share the locks of its own site's pages. By default it has a partition of its own. */
  partitioned?: boolean;
  /**
   * `also`: a request is granted when it holds the browser's own lock of that name too, so that code which uses those is excluded.
   * By default the browser's own locks are left alone.
   */
  native?: 'replaced' | 'also';
}

/**
 * The locks of a service, `ws://host:port` or `wss://host:port`, or of a cluster,
 * `wss://n1:7400,n2:7400`: resolves when it is reached, rejects when it is not.
 */
export function connect(url: ServiceAddress, options?: PageConnectOptions): Promise<ServiceLocks>;

/**
 * A page is in no process, so all that these locks are asked is refused with a NotSupportedError.
 * They are here for code that is loaded by Node too, where `navlocks` has the locks of the process.
 */
export const locks: Locks;

/** The options of `connect()`, with the address of the service among them. */
export type InstallOptions = PageConnectOptions & { url: ServiceAddress };

/**
 * Puts `navigator.locks`, `LockManager` and `Lock` in place, as WebIDL would, and returns that manager: on `globalThis` unless
 * another target is given. With the options of `connect()` the manager is there at once, and requests wait until the service is
 * reached. `StorageBucket` gets `locks` with options only.
 */
export function install(target: object | undefined, locks: LockManager | InstallOptions): LockManager;

/**
 * Undoes the last `install()` on a global object: what was there before is there again. Resolves
 * when the connection that it made is closed.
 */
export function uninstall(target?: object): Promise<void>;
