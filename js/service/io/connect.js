// The locks of a service in Node, for `connect()` and for `install()` with the same options.

import { hostname } from 'node:os';
import { clearTimeout, setInterval, setTimeout } from 'node:timers';
import { checkToken, hidesToken, readAddresses } from './addresses.js';
import { WeakValues } from '../../internal/collections.js';
import { Deliveries } from '../../internal/delivery.js';
import { dial, parseAddress } from './dial.js';
import { readOptions } from './options.js';
import { Partitions } from './partitions.js';
import { socketOfUser, Starter } from './place.js';
import { Presence } from './presence.js';
import { Driver } from './driver.js';
import { ServiceTransport } from './transport.js';
import { createTurns } from '../../internal/turns.js';

/** The longest delay that setInterval takes. */
const DELAY_MS_MAX = 2 ** 31 - 1;

/** Options for a service on this machine: it restarts quickly, and connecting is cheap. */
const LOCAL = { pauseMax: 100, showPresence: (path, shown) => new Presence(path, shown) };

/** Sessions that send `bye` when this thread ends. */
const sessions = new Set();

/** Keeps the event loop alive while any session waits for an answer. */
const alive = setInterval(() => {}, DELAY_MS_MAX).unref();
let waiting = 0;

/**
 * @param interfaces the result of createInterfaces()
 * @param extended   the result of createExtended()
 * @param common     the members of all hosts in Node
 */
export function createServices({ internals: { convert, exception } }, extended, common) {
  /** Connects to a service and resolves with its locks. Rejects if the service is unreachable. */
  async function connect(url = undefined, options = undefined) {
    // The address may be left out, or be among the options, as in `install()`.
    const isAddress = url === undefined || typeof url === 'string' || url instanceof URL || Array.isArray(url);
    const session = isAddress ? createSession(url, options) : createSession(url?.url, url);
    await session.open();
    sessions.add(session);
    return extended.createServiceLocks(openHost(session));
  }

  /** Opens a host and connects in the background. Requests wait for the connection. */
  function startHost({ url, ...options }) {
    return openHost(start(createSession(url, options)));
  }

  function createSession(url, options) {
    const settings = readOptions(options, convert, exception);
    checkCertificates(settings.ca);
    return new Driver({ ...settings, ...createWay(url, settings) }, createPlatform());
  }

  function start(session) {
    sessions.add(session);
    session.start();
    return session;
  }

  function openHost(session) {
    return new Partitions(exception, (settings) => start(new Driver(settings, createPlatform())), describe).open(session);
  }

  function describe(session, client, partition) {
    const traceHandles = common.traceHandles || Boolean(session.options.traceHandles);
    return { ...common, partitions: () => new WeakValues(), traceHandles, transport: new ServiceTransport(session, client, partition) };
  }

  /** How a session reaches its service. */
  function createWay(url, settings) {
    const way = { hidesToken: hidesToken(settings), parse: parseAddress };
    if (url === undefined) return { ...LOCAL, ...way, addresses: [{ path: '' }], dial: createOwnDial(settings) };
    if (settings.start) throw new TypeError("'start' is for this user's own service: leave the address out");
    const addresses = readAddresses(url, parseAddress, (sentence) => {
      throw exception('SyntaxError', sentence);
    });
    checkToken(addresses, settings, exception);
    return {
      ...(addresses[0].path === undefined ? { process: `${process.pid}@${hostname()}` } : LOCAL),
      ...way,
      addresses,
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
      ended: (session) => sessions.delete(session),
    };
  }

  return { connect, startHost };
}

/**
 * Returns a function that dials this user's service. With the option `start` it starts the service
 * first if no process listens and a request needs it.
 */
function createOwnDial({ start, command, ...settings }) {
  const starter = new Starter();
  const hint = start ? '' : ": connect({ start: true }) starts this user's service, and so does every 'navlocks run'";
  return async (_address, isNeeded) => {
    const path = socketOfUser();
    if (start && isNeeded) await starter.start(path, command);
    return dial({ path }, settings, hint);
  };
}

/** Checks the option `ca`: Node would silently ignore a text without a certificate. */
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

// Over TCP the end of a thread or process looks like a broken network to the service.
process.on('exit', () => {
  for (const session of sessions) session.farewell();
});
