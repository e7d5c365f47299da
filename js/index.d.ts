/// <reference lib="esnext.disposable" />

// navlocks for Node: `navigator.locks` for all threads of a process, and through a service.

import type { NodeConnectOptions, ServiceAddress, ServiceLocks, UserServiceOptions } from './service/service.js';

export type {
  ConnectOptions,
  LockConnection,
  NodeConnectOptions,
  ServiceAddress,
  ServiceLocks,
  UserServiceOptions,
} from './service/service.js';

/** Whether a lock excludes all others on its names, or only exclusive ones. */
export type LockMode = 'exclusive' | 'shared';

/** The options of the standard. */
export interface LockOptions {
  /** `exclusive` by default. */
  mode?: LockMode;
  /** The request does not wait: the callback gets null if the lock is not available. */
  ifAvailable?: boolean;
  /** The request is granted at once, and the current holders lose the lock. */
  steal?: boolean;
  /** Aborts the request while it is pending. Ignored after the grant. */
  signal?: AbortSignal;
}

/** The options of this package's own `locks`. */
export interface ExtendedLockOptions extends LockOptions {
  /**
   * The largest number of holders, itself included, beside which the lock may be held: a semaphore.
   * 1 is exclusive. Its `mode` is `shared`; with `exclusive` it is a TypeError.
   */
  limit?: number;
  /**
   * Milliseconds, at least 1, for which the lock is held: after that it is lost with the cause
   * `HeldTooLong`, and the next request is granted. The time begins with the grant. In process a
   * timer of this thread does it; a service keeps the time over restarts and fail-overs.
   */
  maxHold?: number;
  /**
   * Milliseconds that the request waits before a TimeoutError, or before a NetworkError while its
   * service is out of reach. Zero tries once.
   */
  timeout?: number;
  /** A text that `inspect()` shows. */
  tag?: string;
  /**
   * The trace that the request belongs to: the `traceparent` of W3C Trace Context. A service shows
   * it in queries, in events and in its log; a malformed one is ignored, and so is one in process.
   */
  traceparent?: string;
  /** For shared requests: waits at the head of the queue instead of the tail. */
  overtake?: boolean;
  /**
   * The held lock within which the request is made, whose holder keeps it until the request is
   * over: waits between holders make a deadlock certain. A request that would wait for its own
   * outer lock fails at once. Null for none. Otherwise that of the callback that makes the request
   * before it awaits; in callbacks of `reentrant` requests, and in all with the environment
   * variable NAVLOCKS_TRACK_HOLDERS, also after an await.
   */
  within?: ExtendedLock | null;
  /**
   * Runs the callback under an outer lock that has all the names and allows no more holders.
   * Without one it requests a lock, and all requests in its callback are made within that lock:
   * AsyncLocalStorage knows them in Node, Deno and Bun. Pages pass `within`.
   */
  reentrant?: boolean;
}

/** One name, or several that are locked together or not at all. */
export type Scope = string | Iterable<string>;

export interface LockInfo {
  name: string;
  mode: LockMode;
  /** Of requests with a limit above 1; their mode is `shared`. */
  limit?: number;
  clientId: string;
}

export interface LockManagerSnapshot {
  held: LockInfo[];
  pending: LockInfo[];
}

/** A held lock, with the standard's members alone. */
export class Lock {
  protected constructor();
  readonly name: string;
  readonly mode: LockMode;
}

/** A lock of this package's own `locks`. */
export class ExtendedLock extends Lock {
  /** All names, sorted; frozen. */
  readonly scope: readonly string[];
  /** The largest number of holders beside which it is held, if it has a limit above 1. */
  readonly limit: number | undefined;
  /**
   * The token of this grant, larger than that of every earlier grant. A resource that remembers the
   * largest token can refuse a late writer.
   */
  readonly fencingToken: number;
  /**
   * Aborts when the lock is lost. The reason is an AbortError, whose `cause` is a
   * {@link LossCause}.
   */
  readonly signal: AbortSignal;
  /** Whether this client holds the lock. Reads the clock, in case the lease has ended. */
  readonly held: boolean;
  /**
   * Gives the lock a mode that allows more holders, in place: `shared`, or the limit in the
   * options. It keeps its token, no other request comes between, and waiters that fit now are
   * granted.
   *
   * There is no upgrade, because two holders that upgrade would wait for each other: release the
   * lock, request the stricter one, and look again at what it protects. Such a call rejects with an
   * InvalidStateError, and one for a lost lock with the AbortError of the loss.
   */
  downgrade(options?: { mode?: LockMode; limit?: number }): Promise<void>;
  /** Resolves with true when a request waits for the lock, with false if the lock ends first. */
  contended(): Promise<boolean>;
}

/** The cause of a loss: the `cause` of the AbortError. */
export type LossCause =
  | 'Stolen'
  | 'ForceReleased'
  | 'HeldTooLong'
  | 'Evicted'
  | 'Suspended'
  // Through a service:
  | 'ClientEnded'
  | 'LeaseLapsed'
  | 'ServiceGone'
  | 'NotReclaimed';

/**
 * Why a service refused, or could not be reached: the `cause` of an error that is not a loss. See
 * docs/javascript/outages.md.
 */
export type Refusal =
  | 'bad-message'
  | 'bad-state'
  | 'version'
  | 'unauthorized'
  | 'forbidden-origin'
  | 'unknown-session'
  | 'slow-reader'
  | 'lease-lapsed'
  | 'replaced'
  | 'exclusive-overtake'
  | 'limit'
  | 'deadlock'
  | 'shutting-down'
  | 'moved'
  | 'internal'
  | 'unreachable'
  | 'handshake'
  | 'unknown-outcome'
  | 'blocked'
  | 'unsafe'
  | 'closed';

/** Requests that wait for each other. */
export interface LockCycle {
  clients: string[];
  ids: RequestId[];
  /** The lock that waits for itself: a request within it needs one of its names. */
  outer: RequestId | undefined;
  /** False for a cycle that exists only because requests share a client: see `within`. */
  certain: boolean;
}

/** The `cause` of the AbortError of a request that would have closed a deadlock. */
export interface DeadlockCause extends LockCycle {
  code: 'deadlock';
}

/**
 * The `cause` of the errors of this package, which are DOMExceptions. Errors about arguments have
 * none.
 */
export type LockErrorCause = LossCause | Refusal | DeadlockCause;

/** A lock that is held until it is released or disposed of. */
export class LockHandle extends ExtendedLock {
  /** Releases the lock. True if it was held; a second release has no effect. */
  release(): boolean;
  [Symbol.dispose](): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The awaited result of a callback. */
type Result<T> = Promise<Awaited<T>>;

/** The leadership of one candidate, until it resigns or loses it. */
export interface Leadership {
  /**
   * The number of the term, larger than that of every leader before. A resource that remembers the
   * largest one can refuse an earlier leader, which learns of its loss late if it was stopped.
   */
  readonly term: number;
  readonly value: string;
  /** Whether this client leads. Reads the clock, in case the lease has ended. */
  readonly held: boolean;
  /** Aborts when it is lost. The reason is an AbortError, whose `cause` is a {@link LossCause}. */
  readonly signal: AbortSignal;
  /** Resolves with the cause when the leadership is lost, and never after a resignation. */
  lost(): Promise<LossCause>;
  /** Ends the leadership, so that the next candidate is elected. True if it had not ended. */
  resign(): boolean;
  [Symbol.dispose](): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A leader, as an observer sees it. */
export interface Leader {
  readonly id: RequestId;
  /** The number of its term, larger than that of every leader before. */
  readonly term: number;
  /** The value that it campaigned with, such as its address. */
  readonly value: string;
  readonly clientId: string;
  readonly pid: number | undefined;
}

/** The present leader of a name, then each change, with null while there is none. Terms grow. */
export interface Leaders extends AsyncIterableIterator<Leader | null> {
  return(value?: unknown): Promise<IteratorResult<Leader | null>>;
}

/** A lock manager with the standard's members alone. */
export class LockManager {
  protected constructor();
  request<T>(name: string, callback: (lock: Lock) => T): Result<T>;
  request<T>(name: string, options: LockOptions & { ifAvailable?: false }, callback: (lock: Lock) => T): Result<T>;
  request<T>(name: string, options: LockOptions, callback: (lock: Lock | null) => T): Result<T>;
  query(): Promise<LockManagerSnapshot>;
}

/** The id of a request and of its lock: a number in a process, a text through a service. */
export type RequestId = number | string;

/** A lock or a pending request with all details. */
export interface LockDetails {
  id: RequestId;
  scope: string[];
  mode: LockMode;
  limit?: number;
  clientId: string;
  /** When it was granted, or requested if it is pending: milliseconds since 1970, roughly. */
  since: number;
  tag: string | undefined;
  /** The trace that the request belongs to, if a service knows it. */
  traceparent?: string | undefined;
  /** The client's process, if the service knows it. */
  pid?: number | undefined;
  /** Otherwise the process as the client described it to the service: `4711@host`. */
  process?: string | undefined;
  /** The held lock within which it was requested. */
  within?: RequestId | undefined;
}

export interface HeldLockDetails extends LockDetails {
  fencingToken: number;
  /** Until when it may be held, if a service knows that: milliseconds since 1970, roughly. */
  until?: number | undefined;
}

/** A lock space: clients in it share locks. */
export interface LockSpace {
  /**
   * The web origin of the lock space; the service's operator may map several origins to one.
   * Undefined in a process, and without the option `origin`.
   */
  readonly origin: string | undefined;
  /** The partition within the origin. For a frame below another site it includes the top site. */
  readonly partition: string;
}

/** The members of all events of a request. */
interface LockEventAbout {
  id: RequestId;
  scope: string[];
  mode: LockMode;
  limit?: number;
  clientId: string;
  tag: string | undefined;
  /** The trace that the request belongs to, if a service knows it. */
  traceparent?: string | undefined;
  /** The client's process, if the service knows it. */
  pid: number | undefined;
  /** When this client received the event: milliseconds since 1970. */
  time: number;
}

/** Marks missing events before the next one. */
export interface LockEventGap {
  type: 'gap';
  /** The number of events dropped for a slow reader; undefined after a lost connection. */
  missed: number | undefined;
  time: number;
}

/**
 * An event of a request. Its first event is `requested`; `granted` comes at most once; one of the
 * others, except `deadlock`, is the last.
 */
export type LockEvent =
  | (LockEventAbout & { type: 'requested' | 'unavailable' | 'downgraded' | 'released' | 'withdrawn' })
  | (LockEventAbout & { type: 'granted'; fencingToken: number })
  | (LockEventAbout & { type: 'lost' | 'aborted'; cause: LossCause; /** The request that stole it. */ thief: RequestId | undefined })
  | (LockEventAbout & { type: 'deadlock' } & LockCycle)
  | LockEventGap;

/** The events of a lock space, in order, until `return()` or the end of the connection. */
export interface LockEvents extends AsyncIterableIterator<LockEvent> {
  /** The number of unread events that the stream keeps. */
  readonly capacity: number;
  return(value?: unknown): Promise<IteratorResult<LockEvent>>;
}

export interface LockEventsOptions {
  /**
   * The number of unread events that the stream keeps, 4096 by default. Beyond it the stream drops
   * the oldest events and adds a `gap` with their number.
   */
  capacity?: number;
}

export interface Locks extends LockManager {
  request<T>(scope: Scope, callback: (lock: ExtendedLock) => T): Result<T>;
  request<T>(scope: Scope, options: ExtendedLockOptions & { ifAvailable?: false }, callback: (lock: ExtendedLock) => T): Result<T>;
  request<T>(scope: Scope, options: ExtendedLockOptions, callback: (lock: ExtendedLock | null) => T): Result<T>;

  /**
   * Requests a lock and resolves with a handle: `await using lock = await locks.hold('name')`.
   * Null with `ifAvailable` if the lock is not available.
   */
  hold(scope: Scope, options?: ExtendedLockOptions & { ifAvailable?: false }): Promise<LockHandle>;
  hold(scope: Scope, options: ExtendedLockOptions): Promise<LockHandle | null>;

  /**
   * Campaigns for the leadership of a name, with a value such as an address. Resolves when this
   * candidate is elected; candidates are elected in the order in which they began.
   */
  elect(name: string, value: string, options?: { signal?: AbortSignal; timeout?: number }): Promise<Leadership>;
  /** Observes the leaders of a name. */
  leaders(name: string): Leaders;

  /** Returns the snapshot of `query()` with all details. */
  inspect(): Promise<{ held: HeldLockDetails[]; pending: LockDetails[] }>;
  /** Returns the ids of the locks and requests that block a request. */
  blockers(id: RequestId): Promise<{ held: RequestId[]; pending: RequestId[] }>;
  /** Returns the cycles of requests that wait for each other, the certain ones first. */
  deadlocks(): Promise<LockCycle[]>;
  /** Releases all locks held on a name, also those of others. Resolves with their number. */
  forceRelease(name: string): Promise<number>;
  /**
   * Stops this client gracefully: its later requests reject with an InvalidStateError. Resolves
   * when its last pending request has ended, and its last lock is released. Partitions drain apart.
   */
  drain(): Promise<void>;
  /**
   * Subscribes to all later events of this lock space, also those of this client. A pending read
   * keeps a process alive.
   */
  events(options?: LockEventsOptions): LockEvents;
  /** Returns the lock space of this name, which is independent of all others. */
  partition(name: string): Locks;
  /** The lock space: clients of one process or service with equal spaces share locks. */
  readonly space: LockSpace;
  /** The id of this client in queries. */
  readonly clientId: string;
}

/**
 * Connects to a service: `unix:/path`, `ws://host:port` or `wss://host:port`; or to a cluster,
 * `wss://n1:7400,n2:7400`. Rejects with a SyntaxError for a bad address, a NetworkError if no
 * service answers, a SecurityError if the service refuses this client, a NotSupportedError for
 * another version.
 */
export function connect(url: ServiceAddress, options?: NodeConnectOptions): Promise<ServiceLocks>;
/**
 * Connects to the address among the options; without one, to this user's own service, the one that
 * the command `navlocks` uses.
 */
export function connect(options?: InstallOptions): Promise<ServiceLocks>;

/** The locks of this process, shared by all its threads. */
export const locks: Locks;

/** The options of `connect()`, with the address of the service among them. */
export type InstallOptions = (NodeConnectOptions & { url: ServiceAddress }) | (UserServiceOptions & { url?: undefined });

/**
 * Defines `navigator.locks`, `LockManager` and `Lock` as WebIDL would, and returns the manager: by
 * default with the locks of this process. With options of `connect()` requests wait for the
 * connection.
 */
export function install(target?: object, locks?: LockManager | InstallOptions): LockManager;

/** Undoes the last `install()` on a global object. Resolves when its connection is closed. */
export function uninstall(target?: object): Promise<void>;
