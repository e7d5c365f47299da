// The four older APIs of the same lineage, in the same lock space as `locks`.

import type { Lock as StandardLock, LockMode, LockOptions, Scope } from './index.js';

/** A lock of the first drafts, held until all promises that it was given fulfil, one of them rejects, or it is released. */
export class Lock {
  protected constructor();
  /** The names, sorted; frozen. */
  readonly scope: readonly string[];
  readonly mode: LockMode;
  /** Settles when the lock is released: rejects with what the first of its promises rejected with. */
  readonly released: Promise<void>;
  /** Holds the lock until the promise fulfils. Returns `released`; rejects with a TypeError when it is too late. */
  waitUntil(promise: unknown): Promise<void>;
  /** Releases at once. False if it was released before. */
  release(): boolean;
}

/** What a lock was called first. */
export class Flag extends Lock {}

export interface LockRequestOptions {
  mode?: LockMode;
  signal?: AbortSignal;
  ifAvailable?: boolean;
}

type Waits = LockRequestOptions & { ifAvailable?: false };

/** A lock that releases itself in a microtask, unless `waitUntil()` is called before; or with a callback, one held by that. */
export function requestLock(scope: Scope, options?: Waits): Promise<Lock>;
export function requestLock(scope: Scope, options: LockRequestOptions): Promise<Lock | null>;
export function requestLock<T>(scope: Scope, callback: (lock: Lock) => T, options?: Waits): Promise<Awaited<T>>;
export function requestLock<T>(scope: Scope, callback: (lock: Lock | null) => T, options: LockRequestOptions): Promise<Awaited<T>>;

/** A lock that is held until `release()` is called. */
export function requestExplicitLock(scope: Scope, options?: Waits): Promise<Lock>;
export function requestExplicitLock(scope: Scope, options: LockRequestOptions): Promise<Lock | null>;

/** A flag: the mode is required, and a wait is limited by a timeout in milliseconds. */
export function requestFlag(scope: Scope, mode: LockMode, options?: { timeout?: number }): Promise<Flag>;

/** One name and a callback. No options exclude each other; a steal also ends all who wait. */
export function acquire<T>(name: string, callback: (lock: StandardLock) => T): Promise<Awaited<T>>;
export function acquire<T>(name: string, options: LockOptions, callback: (lock: StandardLock | null) => T): Promise<Awaited<T>>;

/** Takes away all locks held on a name, in one step. Their promises reject with an AbortError. */
export function forceRelease(name: string): void;

export function query(): Promise<{ held: { name: string; mode: LockMode }[]; pending: { name: string; mode: LockMode }[] }>;
