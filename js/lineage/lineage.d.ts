// The older drafts of the Web Locks API, over any locks of this package and in the same lock space.

import type { Lock as StandardLock, LockManager, LockMode, LockOptions, Scope } from '../index.js';

/** A lock that is held until all its promises fulfil, one of them rejects, or it is released. */
export class Lock {
  protected constructor();
  /** The names, sorted; frozen. */
  readonly scope: readonly string[];
  readonly mode: LockMode;
  /** Settles when the lock is released. Rejects if one of its promises does or the lock is lost. */
  readonly released: Promise<void>;
  /** Aborts when the lock is lost. The reason is an AbortError with the loss as `cause`. */
  readonly signal: AbortSignal;
  /** Holds the lock until the promise fulfils. Returns `released`, or rejects after the release. */
  waitUntil(promise: unknown): Promise<void>;
  /** Releases the lock. False if it was released before. */
  release(): boolean;
}

/** A lock of the first draft. */
export class Flag extends Lock {}

/** The options of the explainer; others are ignored. */
export interface LockRequestOptions {
  mode?: LockMode;
  signal?: AbortSignal;
  ifAvailable?: boolean;
}

type Waits = LockRequestOptions & { ifAvailable?: false };

/** A request whose promise resolves with the lock, or with null if it is not available. */
export interface LockRequest {
  (scope: Scope, options?: Waits): Promise<Lock>;
  (scope: Scope, options: LockRequestOptions): Promise<Lock | null>;
}

/** A request with a callback that holds the lock. The promise rejects if the lock is lost first. */
export interface ScopedLockRequest {
  <T>(scope: Scope, callback: (lock: Lock) => T, options?: Waits): Promise<Awaited<T>>;
  <T>(scope: Scope, callback: (lock: Lock | null) => T, options: LockRequestOptions): Promise<Awaited<T>>;
}

/** Requests one name. No options exclude each other; a steal also aborts all waiters. */
export interface Acquire {
  <T>(name: string, callback: (lock: StandardLock) => T): Promise<Awaited<T>>;
  <T>(name: string, options: LockOptions, callback: (lock: StandardLock | null) => T): Promise<Awaited<T>>;
}

export interface Lineage {
  readonly acquire: Acquire;
  /** Releases all locks held on a name, in one step. Their promises reject with an AbortError. */
  readonly forceRelease: (name: string) => void;
  readonly query: () => Promise<{ held: { name: string; mode: LockMode }[]; pending: { name: string; mode: LockMode }[] }>;
  /** Requests a flag, with a required mode and a timeout in milliseconds. */
  readonly requestFlag: (scope: Scope, mode: LockMode, options?: { timeout?: number }) => Promise<Flag>;
  /** `scoped.requestLock` if there is a callback, and `auto.requestLock` otherwise. */
  readonly requestLock: LockRequest & ScopedLockRequest;
  /** The same as `explicit.requestLock`. */
  readonly requestExplicitLock: LockRequest;
  /** Locks that release themselves in a microtask, unless `waitUntil()` is called before. */
  readonly auto: { readonly requestLock: LockRequest };
  /** Locks that are held until `release()` is called. */
  readonly explicit: { readonly requestLock: LockRequest };
  /** Locks that are held as long as a callback runs. */
  readonly scoped: { readonly requestLock: ScopedLockRequest };
}

/** Returns the older APIs over these locks: of this process, of `connect()` or of `install()`. */
export function lineageOf(locks: LockManager): Lineage;

/**
 * Defines `acquire` and `forceRelease` on `navigator.locks`, which it installs if there is none.
 * Defines `requestLock` and `requestFlag` on the global object, and returns the lineage.
 */
export function installLineage(target: object, locks: LockManager): Lineage;
