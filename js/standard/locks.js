// The WebIDL surface of the Web Locks API, over any transport (see entry.js), for any realm.
//
//   [SecureContext, Exposed=(Window,Worker)] interface LockManager { request(…); query(); };
//   [SecureContext, Exposed=(Window,Worker)] interface Lock { name; mode; };
//
// https://w3c.github.io/web-locks/

import { KeptWeakMap } from '../internal/collections.js';
import { CallbackEntry, CarryingEntry, WAIT } from './entry.js';
import { append, each, some } from '../internal/lists.js';
import { covering, join, runningEntry } from './nesting.js';
import { listenForAbort } from './signals.js';
import { createConversions } from './webidl.js';

/**
 * Creates the interfaces of a realm, and the functions that make their objects.
 *
 * @param {typeof globalThis} realm whose promises and errors are used
 */
export function createInterfaces(realm = globalThis) {
  const { Promise, TypeError } = realm;
  const DOMException = realm.DOMException ?? globalThis.DOMException;
  const AbortController = realm.AbortController ?? globalThis.AbortController;
  const convert = createConversions(realm);
  const secret = Symbol('constructing');
  let entryOf;
  let hostOf;

  /** https://w3c.github.io/web-locks/#lock */
  class Lock {
    #entry;

    constructor() {
      if (arguments[0] !== secret) throw new TypeError('Illegal constructor');
      this.#entry = arguments[1];
    }

    /** https://w3c.github.io/web-locks/#dom-lock-name */
    get name() {
      return Lock.#of(this).name;
    }

    /** https://w3c.github.io/web-locks/#dom-lock-mode */
    get mode() {
      return Lock.#of(this).mode;
    }

    static #of(lock) {
      if (typeof lock !== 'object' || lock === null || !(#entry in lock)) throw new TypeError('Illegal invocation');
      return lock.#entry;
    }

    static {
      entryOf = Lock.#of;
    }
  }

  /** https://w3c.github.io/web-locks/#lockmanager */
  class LockManager {
    #host;

    constructor() {
      if (arguments[0] !== secret) throw new TypeError('Illegal constructor');
      this.#host = arguments[1];
    }

    /** https://w3c.github.io/web-locks/#dom-lockmanager-request */
    request(name, options, callback = undefined) {
      try {
        return requestMethodSteps(LockManager.#of(this), arguments, false);
      } catch (error) {
        return Promise.reject(error);
      }
    }

    /** https://w3c.github.io/web-locks/#dom-lockmanager-query */
    query() {
      try {
        return queryMethodSteps(LockManager.#of(this));
      } catch (error) {
        return Promise.reject(error);
      }
    }

    static #of(manager) {
      if (typeof manager !== 'object' || manager === null || !(#host in manager)) {
        throw new TypeError('Illegal invocation');
      }
      return manager.#host;
    }

    static {
      hostOf = LockManager.#of;
    }
  }

  /** Returns a DOMException; `cause` distinguishes those of one name. */
  function exception(name, message, cause) {
    const error = new DOMException(message, name);
    if (cause !== undefined) {
      Object.defineProperty(error, 'cause', { value: cause, writable: true, enumerable: false, configurable: true });
    }
    return error;
  }

  /**
   * Converts and checks the arguments of `request()` in WebIDL's order, then submits the request.
   * https://w3c.github.io/web-locks/#dom-lockmanager-request
   */
  function requestMethodSteps(host, args, extended) {
    if (args.length < 2) {
      throw new TypeError(`request() needs a name and a callback, but got ${args.length} argument${args.length === 1 ? '' : 's'}`);
    }
    const scope = convert.scope(args[0], extended);
    // Step 1. If options was not passed, then let options be a new LockOptions dictionary with
    // default members.
    const given = args.length > 2;
    const options = convert.lockOptions(given ? args[1] : undefined, extended);
    if (extended) options.outer = outerOf(host, options);
    const callback = convert.callback(given ? args[2] : args[1]);
    if (host.activation?.isAwaited) return delay(host, () => requestSteps(host, scope, options, callback));
    return requestSteps(host, scope, options, callback);
  }

  function requestSteps(host, scope, options, callback) {
    const wait = checkRequest(host, scope, options);
    const joined = options.reentrant ? covering(host, options.outer, scope, options) : undefined;
    if (joined !== undefined) return workWithin(joined, callback, () => requestSteps(host, scope, options, callback));
    const Request = options.reentrant || host.nesting?.isWanted ? CarryingEntry : CallbackEntry;
    // Steps 10 to 12 are in the entry.
    return new Request(host, scope, options, wait, callback).submit();
  }

  /**
   * Returns the entry of the lock within which a request is made: the one that its options name, or
   * the one in whose callback the program runs, where that is known.
   */
  function outerOf(host, { within }) {
    if (within === undefined) return runningEntry(host);
    if (within === null) return undefined;
    if (!(within instanceof Lock)) throw new TypeError("'within' is not a lock: pass that of a callback, or a handle");
    return entryOf(within);
  }

  /**
   * Runs the callback of a request that joins the hold of an outer lock, or `otherwise` if that is
   * over meanwhile. A handle can be released, and any lock lost.
   */
  function workWithin(entry, callback, otherwise) {
    const work = new Promise((resolve, reject) => {
      runSteps(async () => {
        await undefined;
        return entry.isHeld ? join(entry, callback) : otherwise();
      }, resolve, reject);
    });
    entry.keepFor?.(work);
    return work;
  }

  /**
   * https://wicg.github.io/nav-speculation/prerendering.html#extendedattrdef-delaywhileprerendering
   */
  function delay({ activation }, steps) {
    return new Promise((resolve, reject) => {
      activation.run(() => runSteps(steps, resolve, reject));
    });
  }

  async function runSteps(steps, resolve, reject) {
    try {
      resolve(await steps());
    } catch (error) {
      reject(error);
    }
  }

  /**
   * Takes steps 2 to 9 of https://w3c.github.io/web-locks/#dom-lockmanager-request, and returns how
   * the request waits.
   */
  function checkRequest(host, scope, options) {
    // Steps 2 to 4. The environment's document is fully active, and it has a lock manager.
    checkEnvironment(host);
    // Step 5. If name starts with U+002D HYPHEN-MINUS (-), reject with a NotSupportedError.
    if (typeof scope === 'string' ? isReserved(scope) : some(scope, isReserved)) {
      throw exception('NotSupportedError', "names that start with '-' are reserved: choose another first character");
    }
    return checkOptions(options);
  }

  function checkOptions({ steal, ifAvailable, mode, limit, signal, timeout, overtake }) {
    // Step 6. If both steal and ifAvailable are true, reject with a NotSupportedError.
    if (steal && ifAvailable) {
      throw exception('NotSupportedError', "'steal' and 'ifAvailable' cannot be used together: a steal never waits");
    }
    // Step 7. If steal is true and mode is not "exclusive", reject with a NotSupportedError. One
    // with a limit may steal.
    if (steal && mode !== 'exclusive' && limit === undefined) throw exception('NotSupportedError', "'steal' needs mode 'exclusive'");
    // Step 8. If signal exists, and either of steal or ifAvailable is true, reject with a
    // NotSupportedError. The same holds for a timeout.
    if (steal || ifAvailable) {
      const option = steal ? 'steal' : 'ifAvailable';
      const other = signal !== undefined ? 'signal' : timeout !== undefined ? 'timeout' : undefined;
      if (other !== undefined) {
        throw exception('NotSupportedError', `'${other}' and '${option}' cannot be used together: such a request never waits`);
      }
    }
    if (overtake && (mode !== 'shared' || limit !== undefined || steal || ifAvailable)) {
      throw exception('NotSupportedError', "'overtake' needs mode 'shared', and neither 'limit', 'steal' nor 'ifAvailable'");
    }
    // Step 9. If signal exists and is aborted, reject with its abort reason.
    if (signal?.aborted) throw signal.reason;
    if (steal) return WAIT.steal;
    // A timeout of zero tries once.
    if (ifAvailable || timeout === 0) return WAIT.ifAvailable;
    return overtake ? WAIT.overtake : WAIT.queue;
  }

  /** Takes steps 3 and 4 of `request()`, or 2 and 3 of `query()`. */
  function checkEnvironment(host) {
    const refusal = host.refusal?.();
    if (refusal !== undefined) throw exception(refusal.name, refusal.message);
  }

  /** https://w3c.github.io/web-locks/#dom-lockmanager-query */
  function queryMethodSteps(host) {
    return host.activation?.isAwaited ? delay(host, () => querySteps(host)) : querySteps(host);
  }

  function querySteps(host) {
    // Steps 1 to 3. The environment's document is fully active, and it has a lock manager.
    checkEnvironment(host);
    // Steps 4 to 6. Snapshot the lock state, after all earlier requests.
    return new Promise((resolve, reject) => {
      runSteps(async () => ownSnapshot(await host.transport.query()), resolve, reject);
    });
  }

  /** Copies a snapshot into objects of this realm: the transport may be of another realm. */
  function ownSnapshot(snapshot) {
    if (realm.Object === Object) return snapshot;
    const own = new realm.Object();
    each(['held', 'pending'], (key) => {
      own[key] = new realm.Array();
      each(snapshot[key], (info) => append(own[key], Object.assign(new realm.Object(), info)));
    });
    return own;
  }

  /**
   * Creates a manager for an environment.
   *
   * @param host.transport    carries requests to the lock space, see entry.js
   * @param host.refusal      returns why this environment may not use locks, `{ name, message }`
   * @param host.activation   the activation of a prerendering page, see activation.js
   * @param host.listen       calls an algorithm when a signal aborts; returns how to remove it
   * @param host.trace        adds the awaiting functions to the stack of an error, see node.js
   * @param host.nesting      knows in the callback of which lock it is called, see node.js
   * @param host.observer     has methods for start, grant, miss and end of every request
   * @param createLock        creates the lock that a callback gets
   */
  function createManager(host, Manager = LockManager, createLock = createStandardLock) {
    const complete = {
      listen: listenForAbort,
      setTimeout: realm.setTimeout ?? globalThis.setTimeout,
      clearTimeout: realm.clearTimeout ?? globalThis.clearTimeout,
      ...host,
      Promise,
      AbortController,
      exception,
      lock: createLock,
    };
    const manager = new Manager(secret, complete);
    environments.set(manager, { host: complete, interfaces });
    return manager;
  }

  function createStandardLock(entry) {
    return new Lock(secret, entry);
  }

  defineInterface(Lock, 'Lock', ['name', 'mode']);
  defineInterface(LockManager, 'LockManager', ['request', 'query']);

  const interfaces = {
    LockManager,
    Lock,
    createManager,
    // For the extended surfaces.
    internals: {
      Promise,
      TypeError,
      createStandardLock,
      secret,
      convert,
      exception,
      requestMethodSteps,
      checkRequest,
      checkOptions,
      checkEnvironment,
      hostOf,
      entryOf,
      outerOf,
    },
  };
  return interfaces;
}

/** The host and the interfaces of each manager. */
const environments = new KeptWeakMap();

/** Returns { host, interfaces } of a manager of this package; undefined for other objects. */
export function environmentOf(manager) {
  return environments.get(manager);
}

function isReserved(name) {
  return name.charCodeAt(0) === 0x2d;
}

/**
 * Defines a class as WebIDL defines an interface: its members are enumerable, its tag is its name.
 * https://webidl.spec.whatwg.org/#interface-prototype-object
 */
function defineInterface(Class, name, members) {
  nameClass(Class, name);
  const { prototype } = Class;
  for (const member of members) Object.defineProperty(prototype, member, { enumerable: true });
  Object.defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
}

/** Names a class by a literal, because bundlers rename classes. */
export function nameClass(Class, name) {
  Object.defineProperty(Class, 'name', { value: name, configurable: true });
}

/**
 * Checks the arguments of `install()`, for all entry points.
 *
 * @returns the host of the given locks; undefined for options of `connect()`
 */
export function readInstallation(target, given) {
  if (typeof target?.Promise !== 'function') {
    throw new TypeError("install() needs a global object; that of a node:vm context is vm.runInContext('globalThis', context)");
  }
  if (given === undefined) return undefined;
  const environment = environmentOf(given);
  if (environment !== undefined) return environment.host;
  // Foreign locks, such as a browser's own, must not be taken for options.
  if (typeof given !== 'object' || given === null || typeof given.request === 'function') {
    throw new TypeError('install() needs locks of this package, or the options of connect() such as { url }');
  }
  return undefined;
}

/** The installations of each global object, oldest first: { replaced, close }. */
const installations = new KeptWeakMap();

/** Defines a property, and notes the replaced one. */
function replaceProperty(replaced, object, key, descriptor) {
  append(replaced, { object, key, descriptor: Object.getOwnPropertyDescriptor(object, key) });
  Object.defineProperty(object, key, descriptor);
}

/**
 * Undoes the last installation on a global object. Resolves when its connection is closed.
 *
 * @param target the global object
 */
export async function uninstallInterfaces(target) {
  const installed = installations.get(target) ?? [];
  if (installed.length === 0) return;
  const { replaced, close } = installed[installed.length - 1];
  installed.length--;
  for (let index = replaced.length - 1; index >= 0; index--) {
    const { object, key, descriptor } = replaced[index];
    if (descriptor === undefined) delete object[key];
    else Object.defineProperty(object, key, descriptor);
  }
  await close?.();
}

/**
 * Defines the interfaces and `navigator.locks` as WebIDL does.
 * https://w3c.github.io/web-locks/#navigator-mixins
 *
 * @param openHost returns the host of the manager; called only if the target may use locks
 * @param isOwn    whether uninstalling closes the host
 * @param extend   defines further properties, by the function that it gets
 */
export function installInterfaces(target, { LockManager, Lock, createManager }, openHost, isOwn = false, extend = undefined) {
  // [SecureContext]: Node has no insecure contexts.
  if (target.isSecureContext === false) {
    throw new target.DOMException('this context is not secure: serve the page over https, or from localhost', 'SecurityError');
  }
  const host = openHost();
  const manager = createManager(host);
  const replaced = [];
  const define = (object, key, descriptor) => replaceProperty(replaced, object, key, descriptor);
  if (!installations.has(target)) installations.set(target, []);
  append(installations.get(target), { replaced, close: isOwn ? host.close : undefined });
  const property = { writable: true, enumerable: false, configurable: true };
  define(target, 'LockManager', { ...property, value: LockManager });
  define(target, 'Lock', { ...property, value: Lock });
  const { TypeError } = target;
  if (target.navigator === undefined) {
    define(target, 'navigator', { value: {}, writable: true, enumerable: true, configurable: true });
  }
  const { navigator } = target;
  const prototype = Object.getPrototypeOf(navigator);
  // Without an interface Navigator the object itself gets the attribute.
  const place = prototype === null || prototype === target.Object.prototype || prototype === Object.prototype ? navigator : prototype;
  const isNavigator = createNavigatorCheck(navigator, place);
  const { get } = Object.getOwnPropertyDescriptor(
    {
      get locks() {
        if (!isNavigator(this)) throw new TypeError('Illegal invocation');
        return manager;
      },
    },
    'locks',
  );
  define(place, 'locks', { get, set: undefined, enumerable: true, configurable: true });
  extend?.(define);
  return manager;
}

/** Returns a check for Navigator objects, by a getter of the platform: a realm may have several. */
function createNavigatorCheck(navigator, place) {
  const known = place === navigator ? undefined : Object.getOwnPropertyDescriptor(place, 'userAgent')?.get;
  if (known === undefined) return (object) => object === navigator;
  return (object) => {
    try {
      Reflect.apply(known, object, []);
      return true;
    } catch {
      return false;
    }
  };
}
