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

const host = { listen, observer, setTimeout, clearTimeout, transport: new NativeTransport() };

export const locks = interfaces.createManager(host);

export function install(target = globalThis) {
  return installInterfaces(target, interfaces, interfaces.createManager(host));
}
