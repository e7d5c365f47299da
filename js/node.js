// Node's part: how a thread of this process takes part in its lock space.

import { AsyncResource } from 'node:async_hooks';
import { channel } from 'node:diagnostics_channel';
import { addAbortListener } from 'node:events';
import { createRequire } from 'node:module';
import { clearTimeout, setTimeout } from 'node:timers';
import { createExtended } from './extended.js';
import { createInterfaces, installInterfaces, readInstallation, uninstallInterfaces } from './locks.js';
import { NativeTransport, problem } from './native.js';

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
    if (channels.start.hasSubscribers) channels.start.publish(about(entry));
  },
  grant(entry) {
    if (channels.grant.hasSubscribers) channels.grant.publish(about(entry));
  },
  miss(entry) {
    if (channels.miss.hasSubscribers) channels.miss.publish(about(entry));
  },
  end(entry, error) {
    if (!channels.end.hasSubscribers) return;
    const { ifAvailable, steal } = entry;
    channels.end.publish({ ...about(entry), ifAvailable, steal, error });
  },
};

function about({ name, mode }) {
  return { name, mode };
}

/** Node's own listener is heard even when another one stops the event. */
function listen(signal, algorithm) {
  const listener = addAbortListener(signal, algorithm);
  return () => listener[Symbol.dispose]();
}

/**
 * Rejects with an error after its stack was taken once more, where V8 knows which functions await
 * it: the promise that is resolved with this one needs three turns of the job queue until it is.
 */
function trace(error) {
  const traced = takeStack();
  return traced;

  async function takeStack() {
    await undefined;
    await undefined;
    await undefined;
    Error.captureStackTrace?.(error);
    // A request that was settled before leaves this rejection alone.
    handle(traced);
    throw error;
  }
}

async function handle(promise) {
  try {
    await promise;
  } catch {
    // The promise of the request tells.
  }
}

/** Whether a variable of the environment is set. Deno may refuse to tell. */
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

/** What all hosts of this thread have in common. */
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
};

/** How this thread takes part in a lock space. Without the addon every call is refused, and connect() works all the same. */
function openHost(partition) {
  if (problem !== undefined) return { ...platform, openPartition: openHost, refusal, transport: {} };
  return { ...platform, openPartition: openHost, transport: new NativeTransport(partition) };
}

function refusal() {
  return { name: 'NotSupportedError', message: problem };
}

const host = openHost('');

const extended = createExtended(interfaces);

export const { ExtendedLock, LockHandle } = extended;

/** The locks of a service: resolves when it is reached, rejects when it is not. */
export async function connect(...given) {
  const { createServices } = await import('./connect.js');
  return createServices(interfaces, extended, platform).connect(...given);
}

/** The locks of this process, shared by all its threads. */
export const locks = extended.createLocks(host);

/**
 * Puts `navigator.locks`, `LockManager` and `Lock` in place, as WebIDL would. A global of another realm, such as that of a
 * `node:vm` context, gets interfaces whose promises and errors are its own. The locks are those of this process by default, others
 * of this package, or those of a service by the options of `connect()`.
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

/** Loads the part for services when it is first wanted: it takes longer than all the rest, and few threads need it. */
function startHost(options) {
  const { createServices } = require('./connect.js');
  return createServices(interfaces, extended, platform).startHost(options);
}
