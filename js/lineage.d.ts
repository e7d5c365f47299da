// The ancestors of the Web Locks API, on any locks of this package and in the same lock space.

import type { Lock as StandardLock, LockManager, LockMode, LockOptions, Scope } from './index.js';

/** A lock that is held until all promises that it was given fulfil, one of them rejects, or it is released. */
export class Lock {
  protected constructor();
  /** The names, sorted; frozen. */
  readonly scope: readonly string[];
  readonly mode: LockMode;
  /** Settles when the lock is released: rejects with what the first of its promises rejected with, or when the lock is lost. */
  readonly released: Promise<void>;
  /** Aborts when the lock is lost. The reason is an AbortError, whose `cause` says why. */
  readonly signal: AbortSignal;
  /** Holds the lock until the promise fulfils. Returns `released`; rejects with a TypeError when it is too late. */
  waitUntil(promise: unknown): Promise<void>;
  /** Releases at once. False if it was released before. */
  release(): boolean;
}

/** What a lock was called first. */
export class Flag extends Lock {}

/** The options of the explainer; all others are ignored. */
export interface LockRequestOptions {
  mode?: LockMode;
  signal?: AbortSignal;
  ifAvailable?: boolean;
}

type Waits = LockRequestOptions & { ifAvailable?: false };

/** A request whose promise gives the lock; null if it is not available. */
export interface LockRequest {
  (scope: Scope, options?: Waits): Promise<Lock>;
  (scope: Scope, options: LockRequestOptions): Promise<Lock | null>;
}

/** A request with a callback that holds the lock as long as it runs. The promise rejects when the lock is lost meanwhile. */
export interface ScopedLockRequest {
  <T>(scope: Scope, callback: (lock: Lock) => T, options?: Waits): Promise<Awaited<T>>;
  <T>(scope: Scope, callback: (lock: Lock | null) => T, options: LockRequestOptions): Promise<Awaited<T>>;
}

/** One name and a callback. No options exclude each other; a steal also ends all who wait. */
export interface Acquire {
  <T>(name: string, callback: (lock: StandardLock) => T): Promise<Awaited<T>>;
  <T>(name: string, options: LockOptions, callback: (lock: StandardLock | null) => T): Promise<Awaited<T>>;
}

export interface Lineage {
  readonly acquire: Acquire;
  /** Takes away all locks held on a name, in one step. Their promises reject with an AbortError. */
  readonly forceRelease: (name: string) => void;
  readonly query: () => Promise<{ held: { name: string; mode: LockMode }[]; pending: { name: string; mode: LockMode }[] }>;
  /** A flag: the mode is required, and a wait is limited by a timeout in milliseconds. */
  readonly requestFlag: (scope: Scope, mode: LockMode, options?: { timeout?: number }) => Promise<Flag>;
  /** As that of `scoped` if there is a callback, and of `auto` otherwise. */
  readonly requestLock: LockRequest & ScopedLockRequest;
  /** As that of `explicit`. */
  readonly requestExplicitLock: LockRequest;
  /** Locks that release themselves in a microtask, unless `waitUntil()` is called before. */
  readonly auto: { readonly requestLock: LockRequest };
  /** Locks that are held until `release()` is called. */
  readonly explicit: { readonly requestLock: LockRequest };
  /** Locks that are held as long as a callback runs. */
  readonly scoped: { readonly requestLock: ScopedLockRequest };
}

/** The older APIs over these locks: those of this process, what `connect()` resolved with, or what `install()` returned. */
export function lineageOf(locks: LockManager): Lineage;

/**
 * Puts `acquire` and `forceRelease` on `navigator.locks`, which is put in place if there is none, and `requestLock` and
 * `requestFlag` on the global object.
 */
export function installLineage(target: object, locks: LockManager): Lineage;
