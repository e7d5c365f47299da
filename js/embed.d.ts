// navlocks for embedders: `navigator.locks` for a JavaScript engine or a runtime, over a transport
// of its own.

import type { Lock, LockManager, LockManagerSnapshot, LockMode, LossCause } from './index.js';

export { type LockInfo, Lock, LockManager, type LockManagerSnapshot, type LockMode, type LossCause } from './index.js';

/** The global object of a realm, whose promises and errors the interfaces use. */
export interface Realm {
  Promise: PromiseConstructor;
  TypeError: TypeErrorConstructor;
  DOMException: new (message?: string, name?: string) => Error;
  AbortSignal: Function;
}

/** The interfaces of one realm. */
export interface Interfaces {
  readonly LockManager: typeof LockManager;
  readonly Lock: typeof Lock;
}

/**
 * One request. The transport calls one of `granted`, `unavailable`, `aborted` and `refused`, and
 * after a grant perhaps `lost`. It makes each call in a turn of its own, never within
 * `Transport.request`, and in the order of the engine. A call after the end has no effect, except
 * that `granted` releases a lock whose request was aborted.
 */
export interface Entry {
  readonly name: string;
  readonly mode: LockMode;
  readonly ifAvailable: boolean;
  readonly steal: boolean;
  /** Free for the transport: the number of the request in its engine. */
  number: number;
  /** The cause of a loss that the transport knows and has not delivered yet. */
  loss: LossCause | undefined;
  /** The lock is held: invokes the callback. */
  granted(token?: number): void;
  /** The request did not want to wait: invokes the callback with null. */
  unavailable(): void;
  /** Another client ended the pending request: rejects with an AbortError. */
  aborted(cause: LossCause): void;
  /** The lock is no longer held: rejects with an AbortError. */
  lost(cause: LossCause): void;
  /** The lock space refuses the request: rejects with a DOMException of this name. */
  refused(error: { name: string; message: string; cause?: unknown }): void;
}

/** Carries requests to an engine, and outcomes back. The engine receives calls in their order. */
export interface Transport {
  request(entry: Entry): void;
  /** Releases a lock. Returns true if it was held. */
  release(entry: Entry): boolean;
  /**
   * Aborts a pending request. If it was granted and `granted` was not called yet, the lock is
   * released now, or by that call.
   */
  abort(entry: Entry): void;
  /** Returns all locks and requests, after all earlier calls. */
  query(): LockManagerSnapshot | PromiseLike<LockManagerSnapshot>;
}

/** The environment of a manager. */
export interface Host {
  transport: Transport;
  /** Returns the reason why this environment may not use locks, such as a detached document. */
  refusal?(): { name: string; message: string } | undefined;
  /** Calls the algorithm when a signal aborts. Returns a function that removes it. */
  listen?(signal: AbortSignal, algorithm: () => void): () => void;
}

/** Creates the interfaces of a realm. Throws if the realm lacks an object that they use. */
export function createInterfaces(realm?: Realm): Interfaces;

/** Creates a manager, for an embedder that does not install it as `navigator.locks`. */
export function createManager(interfaces: Interfaces, host: Host): LockManager;

/**
 * Defines `LockManager`, `Lock` and `navigator.locks` on a global object as WebIDL would.
 * `openHost` is called once.
 */
export function installInterfaces(target: object, interfaces: Interfaces, openHost: () => Host): LockManager;

/** Undoes the last `installInterfaces()` on a global object. */
export function uninstallInterfaces(target: object): Promise<void>;

/** Calls of entries, in order, each in a turn of its own. */
export class Deliveries {
  /** @param createTurns takes a function, and returns one that schedules its call in a new turn */
  constructor(createTurns: (turn: () => void) => () => void);
  /** Calls `deliver(entry)` in a turn after all earlier ones. */
  add(deliver: (entry: Entry) => void, entry: Entry): void;
}
