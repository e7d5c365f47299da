// navlocks for Node: `navigator.locks` within a process, for its main thread and all its workers.

import { channel } from 'node:diagnostics_channel';
import { addAbortListener } from 'node:events';
import { clearTimeout, setTimeout } from 'node:timers';
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
  start({ name, mode }) {
    if (channels.start.hasSubscribers) channels.start.publish({ name, mode });
  },
  grant({ name, mode }) {
    if (channels.grant.hasSubscribers) channels.grant.publish({ name, mode });
  },
  miss({ name, mode }) {
    if (channels.miss.hasSubscribers) channels.miss.publish({ name, mode });
  },
  end({ name, mode, ifAvailable, steal }, error) {
    if (channels.end.hasSubscribers) channels.end.publish({ name, mode, ifAvailable, steal, error });
  },
};

/** Node's own listener is heard even when another one stops the event. */
function listen(signal, algorithm) {
  const listener = addAbortListener(signal, algorithm);
  return () => listener[Symbol.dispose]();
}

const host = { listen, observer, setTimeout, clearTimeout, transport: new NativeTransport() };

export const locks = interfaces.createManager(host);

export function install(target = globalThis) {
  return installInterfaces(target, interfaces, interfaces.createManager(host));
}
