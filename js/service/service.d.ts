// The types of locks that a service has: connections, their states and their options.

import type { Locks } from '../index.js';

/** The state of the connection to a service. Fires `change` when `state` changes. */
export interface LockConnection extends EventTarget {
  /**
   * The client retries while `unreachable`. `suspended`: the page is frozen or cached; `refused`:
   * the service refuses this client; `closed`: after `close()`.
   */
  readonly state: 'connecting' | 'connected' | 'unreachable' | 'suspended' | 'refused' | 'closed';
  /** The time of the last change of state: milliseconds since 1970. */
  readonly since: number;
  /** The reason why it is not connected, if so. */
  readonly error: DOMException | undefined;
  /**
   * The milliseconds for which the service keeps the locks without a connection; undefined over a
   * Unix socket.
   */
  readonly lease: number | undefined;
  /** The milliseconds until the locks count as lost, unless the service answers before. */
  readonly leaseLeft: number | undefined;
}

/** The locks of a service, over a connection of their own. */
export interface ServiceLocks extends Locks {
  /** The state of the connection to the service. */
  readonly connection: LockConnection;
  /** Closes the connection. All locks are lost, and the service releases them at once. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Options for a connection to a service. */
export interface ConnectOptions {
  /** The lock space to use. The lock spaces of a service are independent. */
  partition?: string;
  /** The access token of this client. It is not sent to another machine over `ws:`. */
  token?: string;
  /** Allows sending the token to another machine over `ws:`, unencrypted. */
  allowTokenInClear?: boolean;
  /**
   * The milliseconds for which the service should keep the locks without a connection: 100 or more.
   * The service may choose another value.
   */
  lease?: number;
  /**
   * The milliseconds for which the service may be unreachable, 60,000 by default. Then all pending
   * requests and queries reject with a NetworkError. A connected service may be silent for as long,
   * and for at least a second; a lock that is not free is no silence.
   */
  unreachableAfter?: number;
  /**
   * Adds the stack of its creation to the warning about a garbage-collected handle. In Node the
   * variable NAVLOCKS_TRACE_HANDLES does the same.
   */
  traceHandles?: boolean;
}

export interface NodeConnectOptions extends ConnectOptions {
  /** Certificates in PEM form of the authorities for `wss:`, instead of those that Node trusts. */
  ca?: string | Uint8Array;
  /** The web origin whose pages share locks with this process; `--allow-origin` must name it. */
  origin?: string;
}

/** Options for a connection to this user's own service. */
export interface UserServiceOptions extends ConnectOptions {
  /** Starts the service if it does not run. The service ends when it has been idle for a while. */
  start?: boolean;
  /** The command `navlocks` that starts it: by default NAVLOCKS_BIN, or the one in the PATH. */
  command?: string;
}

/**
 * The address of a service, or those of the nodes of a cluster: a list, or a text with commas,
 * where later addresses may leave out the scheme of the first. They are dialled in turn, from a
 * random one on.
 */
export type ServiceAddress = string | URL | readonly (string | URL)[];
