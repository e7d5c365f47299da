// navlocks for Node: `navigator.locks` within a process, for its main thread and all its workers.

/** How a lock is shared with others on the same names. */
export type LockMode = 'exclusive' | 'shared';

/** The options of the standard. */
export interface LockOptions {
  /** Beside nobody, which is the default, or beside other shared locks. */
  mode?: LockMode;
  /** Do not wait: the callback gets null if the lock is not free. */
  ifAvailable?: boolean;
  /** Take the lock from whoever holds it. */
  steal?: boolean;
  /** Ends the wait. Ignored once the lock is granted. */
  signal?: AbortSignal;
}

/** The options of this package's own `locks`. */
export interface ExtendedLockOptions extends LockOptions {
  /** How many milliseconds to wait before a TimeoutError. Zero tries once. */
  timeout?: number;
  /** Shown by `inspect()`. */
  tag?: string;
  /** Shared requests only: wait before all who wait instead of behind them. */
  overtake?: boolean;
}

/** One name, or several that are locked at once or not at all. */
export type Scope = string | Iterable<string>;

export interface LockInfo {
  name: string;
  mode: LockMode;
  clientId: string;
}

export interface LockManagerSnapshot {
  held: LockInfo[];
  pending: LockInfo[];
}

/** A lock that is held. The first two members are the standard's. */
export class Lock {
  protected constructor();
  readonly name: string;
  readonly mode: LockMode;
  /** All names, sorted; frozen. */
  readonly scope: readonly string[];
  /** Larger than that of every grant before: a resource that remembers the largest can refuse a late writer. */
  readonly fencingToken: number;
  /** Aborts when the lock is lost. The reason is an AbortError, whose `cause` is a {@link Loss}. */
  readonly signal: AbortSignal;
}

/** Why a lock was lost: the `cause` of the AbortError. */
export type Loss = 'Stolen' | 'ForceReleased' | 'Evicted' | 'Suspended';

/** A lock that is held until it is released, or disposed of. */
export class LockHandle extends Lock {
  /** Whether it is held, as far as is known here. */
  readonly held: boolean;
  /** True if it was held until now. A second release does nothing. */
  release(): boolean;
  [Symbol.dispose](): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What a callback gives, awaited. */
type Result<T> = Promise<Awaited<T>>;

/** The standard's interface, and nothing more. */
export class LockManager {
  protected constructor();
  request<T>(name: string, callback: (lock: Lock) => T): Result<T>;
  request<T>(name: string, options: LockOptions & { ifAvailable?: false }, callback: (lock: Lock) => T): Result<T>;
  request<T>(name: string, options: LockOptions, callback: (lock: Lock | null) => T): Result<T>;
  query(): Promise<LockManagerSnapshot>;
}

/** A lock or request with all that is known of it. */
export interface LockDetails {
  /** Of the request, and once granted of the lock. */
  id: number;
  scope: string[];
  mode: LockMode;
  clientId: string;
  /** When it was granted, or requested while it waits: milliseconds since 1970, a few exact. */
  since: number;
  tag: string | undefined;
}

export interface HeldLockDetails extends LockDetails {
  fencingToken: number;
}

export interface Locks extends LockManager {
  request<T>(scope: Scope, callback: (lock: Lock) => T): Result<T>;
  request<T>(scope: Scope, options: ExtendedLockOptions & { ifAvailable?: false }, callback: (lock: Lock) => T): Result<T>;
  request<T>(scope: Scope, options: ExtendedLockOptions, callback: (lock: Lock | null) => T): Result<T>;

  /** A handle to the lock: `await using lock = await locks.hold('name')`. Null if it is not available. */
  hold(scope: Scope, options?: ExtendedLockOptions & { ifAvailable?: false }): Promise<LockHandle>;
  hold(scope: Scope, options: ExtendedLockOptions): Promise<LockHandle | null>;

  /** As `query()`, with everything that is known. */
  inspect(): Promise<{ held: HeldLockDetails[]; pending: LockDetails[] }>;
  /** The ids of the locks and of the requests that a request waits for. */
  blockers(id: number): Promise<{ held: number[]; pending: number[] }>;
  /** Clients that wait for each other at this moment. */
  deadlocks(): Promise<{ clients: string[]; ids: number[] }[]>;
  /** Takes away all locks held on a name, from whoever holds them. Resolves with how many there were. */
  forceRelease(name: string): Promise<number>;
  /** Another lock space of this process: the same for all who ask for its name, and independent of every other. */
  partition(name: string): Locks;
  /** Who this thread is in queries. */
  readonly clientId: string;
}

/** The locks of this process, shared by all its threads. */
export const locks: Locks;

/**
 * Puts `navigator.locks`, `LockManager` and `Lock` in place, as WebIDL would, and returns that manager. Without an argument:
 * on `globalThis`.
 */
export function install(target?: object): LockManager;
