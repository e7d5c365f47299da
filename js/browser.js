// navlocks for browsers: `navigator.locks` through a service, for pages and all kinds of workers.
// A page can load this ES module without a bundler.

import { Activation } from './page/activation.js';
import { checkToken, hidesToken, readAddresses } from './service/io/addresses.js';
import { partitionOf } from './page/ancestry.js';
import { installBuckets } from './page/buckets.js';
import { CompanionTransport } from './page/companion.js';
import { Deliveries } from './internal/delivery.js';
import { createExtended } from './extended/extended.js';
import { append, each } from './internal/lists.js';
import { createInterfaces, environmentOf, installInterfaces, readInstallation, uninstallInterfaces } from './standard/locks.js';
import { readOptions } from './service/io/options.js';
import { Partitions } from './service/io/partitions.js';
import { Driver } from './service/io/driver.js';
import { ServiceTransport } from './service/io/transport.js';
import { subprotocols } from './service/wire.js';

/** A browser writes each failed attempt to its console, so a page dials less often. */
const PAUSES = { pauseMin: 500, pauseMax: 5000 };

const own = createEnvironment(globalThis);

export const { LockManager, Lock, ExtendedLock, LockHandle } = own;

/** Refuses every call: a page has no locks of a process. Exported for code that Node loads too. */
export const locks = own.processLocks;

/** Connects to a service and resolves with its locks. Rejects if the service is unreachable. */
export async function connect(url, options = undefined) {
  own.checkEnvironment();
  const session = own.createSession(url, options);
  await own.activated();
  await session.open();
  return own.createServiceLocks(session);
}

/**
 * Defines `navigator.locks`, `LockManager` and `Lock` as WebIDL would, and returns the manager.
 * Takes locks of this package, or options of `connect()`: then requests wait for the connection.
 */
export function install(target = globalThis, given = undefined) {
  const host = readInstallation(target, given);
  const environment = target === globalThis ? own : createEnvironment(target);
  return host === undefined ? environment.installService(given) : environment.install(() => host);
}

/** Undoes the last `install()` on a global object, and closes the connection that it made. */
export function uninstall(target = globalThis) {
  return uninstallInterfaces(target);
}

/** Returns the function that places a partition named by a page within the page's own. */
function placeWithin(partition) {
  return partition === '' ? undefined : (name) => (name === '' ? partition : `${partition} ${name}`);
}

/** Creates the functions of one realm, with its interfaces, its timers and its WebSocket. */
function createEnvironment(realm) {
  const interfaces = createInterfaces(realm);
  const { convert, exception, checkEnvironment } = interfaces.internals;
  const extended = createExtended(interfaces);
  // Read now: after a navigation the window has the members of another document.
  const { document, navigator, origin, location, URL, WebSocket, MessageChannel, Promise, setTimeout, clearTimeout } = realm;
  const activation = new Activation(realm);
  // The browser's own locks, unless navlocks has replaced them already.
  const native = navigator?.locks;

  function createSession(url, options) {
    const settings = readOptions(options, convert, exception);
    const fail = (sentence) => {
      throw exception('SyntaxError', sentence);
    };
    if (url === undefined) fail(`there is no address of a service: write ${parseAddress.forms}`);
    const addresses = readAddresses(url, parseAddress, fail);
    checkToken(addresses, settings, exception);
    const companion = readNative(settings.native);
    const placed = settings.partitioned === false ? undefined : placeWithin(ownPartition());
    const way = { addresses, hidesToken: hidesToken(settings), parse: parseAddress, dial: ({ url: { href } }) => dial(href, settings.token) };
    return beginSession({ ...settings, companion, placed, ...way });
  }

  function beginSession(settings) {
    let unfollow = () => {};
    const session = new Driver({ ...settings, ...PAUSES }, { ...createPlatform(), ended: () => unfollow() });
    activation.run(() => {
      if (document !== undefined && !session.machine.link.isOver) unfollow = followPage(session);
    });
    return session;
  }

  /** The option `native`: the browser's own locks, if a request is to hold them too. */
  function readNative(option) {
    if (option === undefined || option === 'replaced') return undefined;
    if (option !== 'also') throw new realm.TypeError(`'native' is '${option}': use 'replaced' or 'also'`);
    if (native === undefined || environmentOf(native) !== undefined) {
      const message = "'native' is 'also', but this browser has no locks of its own here, or navlocks replaced them before";
      throw exception('NotSupportedError', message);
    }
    return native;
  }

  let partition;

  /** Returns the partition by this environment's ancestors, computed at the first use of locks. */
  function ownPartition() {
    partition ??= refusal() === undefined ? partitionOf(realm) : '';
    return partition;
  }

  /** Connects when the page is active, unless it may not use locks. */
  function start(session) {
    activation.run(() => {
      if (refusal() === undefined) session.start();
    });
    return session;
  }

  function parseAddress(text) {
    const url = parse(text);
    // As WebSocket itself understands them.
    if (url?.protocol === 'http:') url.protocol = 'ws:';
    if (url?.protocol === 'https:') url.protocol = 'wss:';
    return (url?.protocol === 'ws:' || url?.protocol === 'wss:') && url.hash === '' ? { url } : undefined;
  }
  parseAddress.forms = 'ws://host:port or wss://host:port';

  function parse(url) {
    try {
      return new URL(url, document?.baseURI ?? location?.href);
    } catch {
      return undefined;
    }
  }

  function dial(address, token) {
    if (navigator?.onLine === false) throw { code: 'unreachable', message: 'the browser is offline' };
    try {
      return new WebSocket(address, subprotocols(token));
    } catch ({ message }) {
      throw { code: 'blocked', message };
    }
  }

  function createPlatform() {
    return {
      deliveries: new Deliveries(createTurns),
      messagesHaveTurns: true,
      exception,
      Promise,
      setTimeout: (work, milliseconds) => setTimeout(work, milliseconds),
      clearTimeout: (timer) => clearTimeout(timer),
    };
  }

  /**
   * Begins each turn by a message to itself: a task of its own that browsers do not throttle.
   * In Node an open port keeps the process alive, hence `unref`. jsdom has no message channels.
   */
  function createTurns(turn) {
    if (MessageChannel === undefined) return () => setTimeout(turn);
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.unref?.();
      turn();
    };
    port1.unref?.();
    return () => {
      port1.ref?.();
      port2.postMessage(undefined);
    };
  }

  /**
   * Closes the session with its page. A cached or frozen page loses locks and keeps requests.
   * Returns a function that removes the listeners.
   */
  function followPage(session) {
    const listeners = [
      [realm, 'pagehide', ({ persisted }) => (persisted ? session.step('suspend') : session.close())],
      [realm, 'pageshow', () => session.step('resume')],
      [realm, 'online', () => session.step('hurry')],
      [document, 'freeze', () => session.step('suspend')],
      [document, 'resume', () => session.step('resume')],
    ];
    each(listeners, ({ 0: target, 1: type, 2: listener }) => target.addEventListener(type, listener));
    return () => each(listeners, ({ 0: target, 1: type, 2: listener }) => target.removeEventListener(type, listener));
  }

  /**
   * Returns why this environment may not use locks, if so.
   * https://w3c.github.io/web-locks/#dom-lockmanager-request, steps 3 and 4
   */
  function refusal() {
    if (document?.defaultView === null) {
      return { name: 'InvalidStateError', message: 'the document is not fully active: its page or frame is gone' };
    }
    if (origin === 'null') {
      return { name: 'SecurityError', message: 'an opaque origin has no locks: serve the page from a real one' };
    }
    return undefined;
  }

  function openHost(session) {
    return new Partitions(exception, (settings) => start(beginSession(settings)), describe).open(session);
  }

  function describe(session, client, partition) {
    const { companion, traceHandles } = session.options;
    return {
      activation,
      refusal,
      warn: (text) => console.warn(text),
      traceHandles: Boolean(traceHandles),
      transport: companion === undefined ? new ServiceTransport(session, client, partition) : new CompanionTransport(session, client, partition, companion),
    };
  }

  /** Returns a host that refuses every call. */
  function openRefusing() {
    const message = 'a page has no locks of a process: connect() to a service, or use navigator.locks';
    return { openPartition: openRefusing, refusal: () => ({ name: 'NotSupportedError', message }), transport: {} };
  }

  function install(openOwn) {
    return installInterfaces(realm, interfaces, openOwn);
  }

  /** Returns a function that closes the page's session and those of its storage buckets. */
  function closeWith(session, buckets) {
    return async () => {
      const sessions = [session];
      each(buckets, (bucket) => append(sessions, bucket));
      for (let index = 0; index < sessions.length; index++) await sessions[index].close();
    };
  }

  function installService({ url, ...options } = {}) {
    const session = createSession(url, options);
    const buckets = [];
    const openOwn = () => ({ ...openHost(session), close: closeWith(session, buckets) });
    const extend = (define) => installBuckets(realm, (name) => openBucket(name, url, options, buckets), define);
    const manager = installInterfaces(realm, interfaces, openOwn, true, extend);
    start(session);
    return manager;
  }

  /** Opens a session for a storage bucket, so that deleting the bucket ends its locks alone. */
  function openBucket(name, url, { partition: within, native: _, ...options }, buckets) {
    const session = createSession(url, { ...options, partition: `${within === undefined ? '' : `${within} `}bucket ${name}` });
    append(buckets, session);
    start(session);
    const { transport, ...host } = openHost(session);
    return {
      createManager: () => interfaces.createManager({ ...host, transport }),
      async end() {
        try {
          const { held } = await transport.query();
          for (let index = 0; index < held.length; index++) await transport.forceRelease(held[index].name);
        } catch {
          // An unreachable service releases them when the leases end.
        }
        await session.close();
      },
    };
  }

  return {
    LockManager: interfaces.LockManager,
    Lock: interfaces.Lock,
    ExtendedLock: extended.ExtendedLock,
    LockHandle: extended.LockHandle,
    processLocks: extended.createLocks(openRefusing()),
    createSession,
    activated: () => new Promise((resolve) => activation.run(resolve)),
    checkEnvironment: () => checkEnvironment({ refusal }),
    createServiceLocks: (session) => extended.createServiceLocks(openHost(session)),
    install,
    installService,
  };
}
