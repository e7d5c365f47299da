/// <reference lib="esnext.disposable" />

// navlocks for Node: `navigator.locks` within a process, for its main thread and all its workers, and through a service.

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

/** A lock that is held: the standard's interface, and nothing more. */
export class Lock {
  protected constructor();
  readonly name: string;
  readonly mode: LockMode;
}

/** A lock of this package's own `locks`. */
export class ExtendedLock extends Lock {
  /** All names, sorted; frozen. */
  readonly scope: readonly string[];
  /** Larger than that of every grant before: a resource that remembers the largest can refuse a late writer. */
  readonly fencingToken: number;
  /** Aborts when the lock is lost. The reason is an AbortError, whose `cause` is a {@link Loss}. */
  readonly signal: AbortSignal;
  /** Whether it is held, as far as this client knows: asks the clock whether the lease is over. */
  readonly held: boolean;
  /**
   * Resolves with true when a request waits for this lock, and with false when the lock is over
   * before.
   */
  contended(): Promise<boolean>;
}

/** Why a lock was lost: the `cause` of the AbortError. */
export type Loss =
  | 'Stolen'
  | 'ForceReleased'
  | 'Evicted'
  | 'Suspended'
  // Through a service:
  | 'ClientEnded'
  | 'LeaseLapsed'
  | 'ServiceGone'
  | 'NotReclaimed';

/**
 * Why a service, or the way to it, refused: the `cause` of an error that is no loss of a lock. See
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
  | 'blocked'
  | 'unsafe'
  | 'closed';

/** The `cause` of the AbortError of a request that would have closed a deadlock. */
export interface DeadlockCause {
  code: 'deadlock';
  clients: string[];
  ids: RequestId[];
}

/**
 * The `cause` of the errors of this package, which are DOMExceptions. Errors about arguments have
 * none.
 */
export type LockErrorCause = Loss | Refusal | DeadlockCause;

/** A lock that is held until it is released, or disposed of. */
export class LockHandle extends ExtendedLock {
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

/** Of a request, and once granted of the lock: a number in a process, a text through a service. */
export type RequestId = number | string;

/** A lock or request with all that is known of it. */
export interface LockDetails {
  id: RequestId;
  scope: string[];
  mode: LockMode;
  clientId: string;
  /** When it was granted, or requested while it waits: milliseconds since 1970, a few exact. */
  since: number;
  tag: string | undefined;
  /** The process, where a service knows it. */
  pid?: number | undefined;
}

export interface HeldLockDetails extends LockDetails {
  fencingToken: number;
}

/** Where locks are shared. */
export interface LockSpace {
  /**
   * The web origin whose pages share it, as the service takes it: its operator may have given
   * several origins one space. Undefined in a process, and for programs that connect without the
   * option `origin`.
   */
  readonly origin: string | undefined;
  /** The partition within that; of a frame below another site, with the site at the top. */
  readonly partition: string;
}

/** What all events of a request repeat. */
interface LockEventAbout {
  id: RequestId;
  scope: string[];
  mode: LockMode;
  clientId: string;
  tag: string | undefined;
  /** The process, where a service knows it. */
  pid: number | undefined;
  /** When this client learned of it: milliseconds since 1970. */
  time: number;
}

/** Events are missing before the next one. */
export interface LockEventGap {
  type: 'gap';
  /** How many, if the reader was too slow; undefined if the connection to the service was lost. */
  missed: number | undefined;
  time: number;
}

/**
 * Something that happened to a request. Each begins with `requested`; `granted` comes once at most;
 * exactly one of the others but `deadlock` is the last.
 */
export type LockEvent =
  | (LockEventAbout & { type: 'requested' | 'unavailable' | 'released' | 'withdrawn' })
  | (LockEventAbout & { type: 'granted'; fencingToken: number })
  | (LockEventAbout & { type: 'lost' | 'aborted'; cause: Loss; /** The request that stole it. */ thief: RequestId | undefined })
  | (LockEventAbout & { type: 'deadlock'; clients: string[]; ids: RequestId[] })
  | LockEventGap;

/** The events of a lock space, in order, until `return()` or the end of the connection. */
export interface LockEvents extends AsyncIterableIterator<LockEvent> {
  /** How many events it keeps for a slow reader. */
  readonly capacity: number;
  return(value?: unknown): Promise<IteratorResult<LockEvent>>;
}

export interface LockEventsOptions {
  /**
   * How many events to keep for a slow reader: 4096 by default. Beyond it the oldest are dropped,
   * and a `gap` tells how many.
   */
  capacity?: number;
}

export interface Locks extends LockManager {
  request<T>(scope: Scope, callback: (lock: ExtendedLock) => T): Result<T>;
  request<T>(scope: Scope, options: ExtendedLockOptions & { ifAvailable?: false }, callback: (lock: ExtendedLock) => T): Result<T>;
  request<T>(scope: Scope, options: ExtendedLockOptions, callback: (lock: ExtendedLock | null) => T): Result<T>;

  /** A handle to the lock: `await using lock = await locks.hold('name')`. Null if it is not available. */
  hold(scope: Scope, options?: ExtendedLockOptions & { ifAvailable?: false }): Promise<LockHandle>;
  hold(scope: Scope, options: ExtendedLockOptions): Promise<LockHandle | null>;

  /** As `query()`, with everything that is known. */
  inspect(): Promise<{ held: HeldLockDetails[]; pending: LockDetails[] }>;
  /** The ids of the locks and of the requests that a request waits for. */
  blockers(id: RequestId): Promise<{ held: RequestId[]; pending: RequestId[] }>;
  /** Clients that wait for each other at this moment. */
  deadlocks(): Promise<{ clients: string[]; ids: RequestId[] }[]>;
  /** Takes away all locks held on a name, from whoever holds them. Resolves with how many there were. */
  forceRelease(name: string): Promise<number>;
  /**
   * Every event of this lock space from now on. What this client asks later is among them. A reader
   * that waits keeps a process alive.
   */
  events(options?: LockEventsOptions): LockEvents;
  /** Another lock space: the same for all who ask for its name, and independent of every other. */
  partition(name: string): Locks;
  /** Which lock space this is: clients whose spaces are equal share locks, in a process or at one service for one user. */
  readonly space: LockSpace;
  /** Who this client is in queries. */
  readonly clientId: string;
}

/** Whether a service can be reached. Fires `change` when `state` is another one. */
export interface LockConnection extends EventTarget {
  /**
   * `unreachable`: tried again and again. `suspended`: its page sleeps. `refused`: the service does
   * not take this client. `closed`: by `close()`.
   */
  readonly state: 'connecting' | 'connected' | 'unreachable' | 'suspended' | 'refused' | 'closed';
  /** Since when: milliseconds since 1970. */
  readonly since: number;
  /** Why it is not connected, if so. */
  readonly error: DOMException | undefined;
  /**
   * For how many milliseconds the service keeps the locks without a connection; undefined over a
   * Unix socket.
   */
  readonly lease: number | undefined;
  /**
   * How many milliseconds are left until the locks count as lost, unless the service is heard from.
   */
  readonly leaseLeft: number | undefined;
}

/** The locks of a service, over a connection of their own. */
export interface ServiceLocks extends Locks {
  /** Whether the service can be reached, and since when. */
  readonly connection: LockConnection;
  /** Ends the connection: all locks are lost, and the service knows. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** How to reach a service. */
export interface ConnectOptions {
  /** The lock space to use. Those of one service know nothing of each other. */
  partition?: string;
  /** What proves to the service who asks. */
  token?: string;
  /**
   * For how many milliseconds the service should keep the locks when the network breaks, 100 at
   * least; it may give less or more.
   */
  lease?: number;
  /**
   * How many milliseconds a service may be out of reach, or say nothing, before those who wait for
   * it get a NetworkError: 60,000, or Infinity. Also requests that never wait for a lock, and
   * questions.
   */
  patience?: number;
  /**
   * Lets the warning of a handle that was garbage collected say where it was made. In Node also by
   * the variable NAVLOCKS_TRACE_HANDLES.
   */
  traceHandles?: boolean;
}

export interface NodeConnectOptions extends ConnectOptions {
  /** Certificates in PEM form of the authorities to trust for `wss:`, instead of those that Node trusts. */
  ca?: string | Uint8Array;
  /** The web origin whose pages this process shares locks with. The service must allow it (`--allow-origin`). */
  origin?: string;
}

/** How to reach this user's own service. */
export interface OwnConnectOptions extends ConnectOptions {
  /** Starts the service if it does not run; it ends by itself when nobody has used it for a while. */
  start?: boolean;
  /** The command `navlocks` for that: by default what the variable NAVLOCKS_BIN names, or the one in the PATH. */
  command?: string;
}

/**
 * The address of a service, or those of the nodes of a cluster: a list, or a text with commas, where
 * later addresses may leave out the scheme of the first. They are dialled in turn, from a random one
 * on.
 */
export type ServiceAddress = string | URL | readonly (string | URL)[];

/**
 * Connects to a service: `unix:/path`, `ws://host:port` or `wss://host:port`; or to a cluster,
 * `wss://n1:7400,n2:7400`. Rejects with a SyntaxError for a bad address, a NetworkError if nobody
 * answers, a SecurityError if the service refuses this client, a NotSupportedError for another
 * version.
 */
export function connect(url: ServiceAddress, options?: NodeConnectOptions): Promise<ServiceLocks>;
/** Connects to this user's own service, the one that the command `navlocks` uses. */
export function connect(options?: OwnConnectOptions): Promise<ServiceLocks>;

/** The locks of this process, shared by all its threads. */
export const locks: Locks;

/** The options of `connect()`, with the address of the service among them. */
export type InstallOptions = (NodeConnectOptions & { url: ServiceAddress }) | (OwnConnectOptions & { url?: undefined });

/**
 * Puts `navigator.locks`, `LockManager` and `Lock` in place, as WebIDL would, and returns that manager. Without an argument:
 * on `globalThis`, with the locks of this process. With the options of `connect()` the manager is there at once, and requests wait
 * until the service is reached.
 */
export function install(target?: object, locks?: LockManager | InstallOptions): LockManager;

/**
 * Undoes the last `install()` on a global object: what was there before is there again. Resolves
 * when the connection that it made is closed.
 */
export function uninstall(target?: object): Promise<void>;
