// Node's part: how a thread of this process takes part in its lock space.

import { AsyncResource } from 'node:async_hooks';
import { channel } from 'node:diagnostics_channel';
import { addAbortListener } from 'node:events';
import { clearTimeout, setTimeout } from 'node:timers';
import { createExtended } from './extended.js';
import { createInterfaces, installInterfaces } from './locks.js';
import { NativeTransport } from './native.js';

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

/** What all hosts of this thread have in common. */
const platform = {
  listen,
  observer,
  setTimeout,
  clearTimeout,
  /** Carries AsyncLocalStorage from a request to its callback. */
  context: () => new AsyncResource('LockRequest'),
};

/** How this thread takes part in a lock space. */
function openHost(partition) {
  return { ...platform, openPartition: openHost, transport: new NativeTransport(partition) };
}

const host = openHost('');

const extended = createExtended(interfaces);

export const { ExtendedLock, LockHandle } = extended;

/** The locks of a service. What that takes is loaded when it is first wanted: it is more than all the rest, and few threads ask. */
export async function connect(...given) {
  const { createConnect } = await import('./connect.js');
  return createConnect(interfaces, extended, platform)(...given);
}

/** The locks of this process, shared by all its threads. */
export const locks = extended.createLocks(host);

/**
 * Puts `navigator.locks`, `LockManager` and `Lock` in place, as WebIDL would. A global of another realm, such as that of a
 * `node:vm` context, gets interfaces whose promises and errors are its own. The locks are those of this process, or others.
 */
export function install(target = globalThis, other = locks) {
  if (typeof target?.Promise !== 'function') {
    throw new TypeError("install() needs a global object; that of a node:vm context is vm.runInContext('globalThis', context)");
  }
  const own = target.Promise === globalThis.Promise;
  const installed = own ? interfaces : createInterfaces(target);
  return installInterfaces(target, installed, installed.createManager(interfaces.internals.hostOf(other)));
}
