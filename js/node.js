// The entry point for Node: each thread is a client of the process's lock space.

import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { channel } from 'node:diagnostics_channel';
import { addAbortListener } from 'node:events';
import { createRequire } from 'node:module';
import { clearTimeout, setTimeout } from 'node:timers';
import { WeakValues } from './internal/collections.js';
import { createExtended } from './extended/extended.js';
import { createInterfaces, installInterfaces, readInstallation, uninstallInterfaces } from './standard/locks.js';
import { problem, transportOf } from './native/native.js';

const interfaces = createInterfaces(globalThis);

export const { LockManager, Lock } = interfaces;

/** Node's vocabulary: https://nodejs.org/api/diagnostics_channel.html#web-locks */
const channels = {
  start: channel('locks.request.start'),
  grant: channel('locks.request.grant'),
  miss: channel('locks.request.miss'),
  end: channel('locks.request.end'),
};

const observer = {
  start(entry) {
    if (channels.start.hasSubscribers) channels.start.publish(describe(entry));
  },
  grant(entry) {
    if (channels.grant.hasSubscribers) channels.grant.publish(describe(entry));
  },
  miss(entry) {
    if (channels.miss.hasSubscribers) channels.miss.publish(describe(entry));
  },
  end(entry, error) {
    if (!channels.end.hasSubscribers) return;
    const { ifAvailable, steal } = entry;
    channels.end.publish({ ...describe(entry), ifAvailable, steal, error });
  },
};

function describe({ name, mode }) {
  return { name, mode };
}

/** Adds an abort listener of Node, which runs even if another listener stops the event. */
function listen(signal, algorithm) {
  const listener = addAbortListener(signal, algorithm);
  return () => listener[Symbol.dispose]();
}

/**
 * Returns a promise that rejects with the error, whose stack then has the awaiting functions. V8
 * knows these after three jobs, when the request's promise has adopted this one.
 */
function trace(error) {
  const traced = takeStack();
  return traced;

  async function takeStack() {
    await undefined;
    await undefined;
    await undefined;
    Error.captureStackTrace?.(error);
    // The promise of a request that was settled before does not handle this rejection.
    handle(traced);
    throw error;
  }
}

async function handle(promise) {
  try {
    await promise;
  } catch {
    // The promise of the request reports it.
  }
}

/** Returns whether an environment variable is set. Deno may deny the access. */
function isSet(variable) {
  try {
    return Boolean(process.env[variable]);
  } catch {
    return false;
  }
}

function warn(text) {
  process.emitWarning(text, 'NavlocksWarning');
}

/** The entry in whose callback the program runs. Costs nothing before the first `run`. */
const holders = new AsyncLocalStorage();

const nesting = {
  /** Whether all callbacks know their lock. The context costs time even where no request nests. */
  isWanted: isSet('NAVLOCKS_TRACK_HOLDERS'),
  outer: () => holders.getStore(),
  run: (entry, work) => holders.run(entry, work),
};

/** The members of all hosts in this thread. */
const platform = {
  trace,
  warn,
  traceHandles: isSet('NAVLOCKS_TRACE_HANDLES'),
  listen,
  observer,
  setTimeout,
  clearTimeout,
  /** Carries AsyncLocalStorage from a request to its callback. */
  context: () => new AsyncResource('LockRequest'),
  nesting,
};

/** Opens a host in a lock space. Without the addon it refuses every call, but connect() works. */
function openHost(partition) {
  const host = { ...platform, openPartition: openHost, partitions: () => new WeakValues() };
  return problem === undefined ? { ...host, transport: transportOf(partition) } : { ...host, refusal, transport: {} };
}

function refusal() {
  return { name: 'NotSupportedError', message: problem };
}

const host = openHost('');

const extended = createExtended(interfaces);

export const { ExtendedLock, LockHandle } = extended;

/** Connects to a service and resolves with its locks. Rejects if the service is unreachable. */
export async function connect(...given) {
  const { createServices } = await import('./service/io/connect.js');
  return createServices(interfaces, extended, platform).connect(...given);
}

/** The locks of this process, shared by all its threads. */
export const locks = extended.createLocks(host);

/**
 * Defines `navigator.locks`, `LockManager` and `Lock` as WebIDL would, with the target's promises
 * and errors. Takes locks of this package, or options of `connect()`.
 */
export function install(target = globalThis, given = locks) {
  if (given === locks) interfaces.internals.checkEnvironment(host);
  const chosen = readInstallation(target, given);
  const installed = target.Promise === globalThis.Promise ? interfaces : createInterfaces(target);
  return installInterfaces(target, installed, () => chosen ?? startHost(given), chosen === undefined);
}

/** Undoes the last `install()` on a global object, and closes the connection that it made. */
export function uninstall(target = globalThis) {
  return uninstallInterfaces(target);
}

const require = createRequire(import.meta.url);

/** Loads connect.js at the first use: it is slow to load, and few threads need it. */
function startHost(options) {
  const { createServices } = require('./service/io/connect.js');
  return createServices(interfaces, extended, platform).startHost(options);
}
