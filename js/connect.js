// The locks of a service, for Node: `connect`, and what `install` puts in place with the same
// options.

import { clearTimeout, setInterval, setTimeout } from 'node:timers';
import { readAddresses } from './addresses.js';
import { Deliveries } from './delivery.js';
import { dial, parseAddress } from './dial.js';
import { readOptions, readPartition } from './options.js';
import { Partitions } from './partitions.js';
import { socketOfUser, Starter } from './place.js';
import { Presence } from './presence.js';
import { Route } from './route.js';
import { ServiceTransport } from './service.js';
import { Session } from './session.js';
import { createTurns } from './turns.js';

/** The longest delay that setInterval takes. */
const DELAY_MS_MAX = 2 ** 31 - 1;

/** A service on the same machine is started again within moments, an attempt to reach it costs next to nothing. */
const LOCAL = { pauseMax: 100, showPresence: (path, shown) => new Presence(path, shown) };

/** Sessions that take leave when this thread ends. */
const sessions = new Set();

/** The settings of sessions, for further ones beside them. */
const settingsOf = new WeakMap();

/** Keeps the event loop alive while any session has something to wait for. */
const alive = setInterval(() => {}, DELAY_MS_MAX).unref();
let waiting = 0;

/**
 * @param interfaces what createInterfaces() made
 * @param extended   what createExtended() made
 * @param common     what all hosts of Node have in common
 */
export function createServices({ internals: { convert, exception } }, extended, common) {
  /** Resolves with the locks when the service is reached, rejects when it is not. */
  async function connect(url = undefined, options = undefined) {
    // The address may be left out.
    const isAddress = url === undefined || typeof url === 'string' || url instanceof URL || Array.isArray(url);
    const session = createSession(isAddress ? url : undefined, isAddress ? options : url);
    await session.open();
    sessions.add(session);
    return extended.createServiceLocks(openFirstHost(session));
  }

  /** The host of a service that is dialled in the background: requests wait until the service is reached. */
  function startHost({ url, ...options }) {
    const session = createSession(url, options);
    sessions.add(session);
    session.start();
    return openFirstHost(session);
  }

  function createSession(url, options) {
    const settings = readOptions(options, convert, exception);
    checkCertificates(settings.ca);
    return beginSession({ ...settings, ...createWay(url, settings) });
  }

  function beginSession(settings) {
    const session = new Session(settings, createPlatform());
    settingsOf.set(session, settings);
    return session;
  }

  function openFirstHost(session) {
    const partitions = new Partitions(session, startBeside);
    return openHost(partitions, session, 0);
  }

  /** The session of another partition of a cluster. */
  function startBeside(partition, beside) {
    const session = beginSession({ ...settingsOf.get(beside), partition, beside });
    sessions.add(session);
    session.start();
    return session;
  }

  function openHost(partitions, session, client) {
    return {
      ...common,
      traceHandles: common.traceHandles || Boolean(settingsOf.get(session).traceHandles),
      transport: new ServiceTransport(session, client),
      openPartition(name) {
        const { session: other, client: opened } = partitions.open(session, readPartition(name, exception));
        return openHost(partitions, other, opened);
      },
      async close() {
        await partitions.close();
        partitions.each((other) => sessions.delete(other));
      },
    };
  }

  /** How a session reaches its service. */
  function createWay(url, settings) {
    const isShown = settings.token !== undefined;
    if (url === undefined) {
      const createRoute = () => new Route([{ path: '' }], isShown, parseAddress);
      return { ...LOCAL, createRoute, dial: createOwnDial(settings) };
    }
    if (settings.start) throw new TypeError("'start' is for this user's own service: leave the address out");
    const addresses = readAddresses(url, parseAddress, (sentence) => {
      throw exception('SyntaxError', sentence);
    });
    return {
      ...(addresses[0].path === undefined ? {} : LOCAL),
      createRoute: () => new Route(addresses, isShown, parseAddress),
      dial: (address) => dial(address, settings),
    };
  }

  function createPlatform() {
    return {
      deliveries: new Deliveries(createTurns),
      exception,
      Promise,
      setTimeout: (work, milliseconds) => setTimeout(work, milliseconds).unref(),
      clearTimeout,
      keepAlive,
    };
  }

  return { connect, startHost };
}

/** Reaches the service of this user; started, if that is wished, something needs it and no process listens. */
function createOwnDial({ start, command, ...settings }) {
  const starter = new Starter();
  const hint = start ? '' : ": connect({ start: true }) starts this user's service, and so does every 'navlocks run'";
  return async (_address, isNeeded) => {
    const path = socketOfUser();
    if (start && isNeeded) await starter.start(path, command);
    return dial({ path }, settings, hint);
  };
}

/** The option `ca`: Node takes a text without a certificate for no authority at all. */
function checkCertificates(ca) {
  if (ca === undefined) return;
  const text = typeof ca === 'string' ? ca : ca instanceof Uint8Array ? Buffer.from(ca).toString('latin1') : '';
  if (!text.includes('-----BEGIN CERTIFICATE-----')) {
    throw new TypeError("'ca' has no certificate in PEM form: give the text of the file, not its name");
  }
}

function keepAlive(needed) {
  waiting += needed ? 1 : -1;
  if (waiting > 0) alive.ref();
  else alive.unref();
}

// Over TCP a thread or process that is gone looks like a network that broke.
process.on('exit', () => {
  for (const session of sessions) session.farewell();
});
