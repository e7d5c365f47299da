// The WebIDL surface of the Web Locks API, over any transport (see entry.js), for any realm.
//
//   [SecureContext, Exposed=(Window,Worker)] interface LockManager { request(…); query(); };
//   [SecureContext, Exposed=(Window,Worker)] interface Lock { name; mode; };
//
// https://w3c.github.io/web-locks/

import { KeptWeakMap } from './collections.js';
import { CallbackEntry, WAIT } from './entry.js';
import { append, each, some } from './lists.js';
import { listenForAbort } from './signals.js';
import { createConversions } from './webidl.js';

/**
 * The interfaces as a realm has them, and how to make their objects.
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

  /** A DOMException; `cause` tells those of one name apart. */
  function exception(name, message, cause) {
    const error = new DOMException(message, name);
    if (cause !== undefined) {
      Object.defineProperty(error, 'cause', { value: cause, writable: true, enumerable: false, configurable: true });
    }
    return error;
  }

  /**
   * Converts the arguments of `request()`, checks them and asks, in the order of WebIDL and of the method's steps.
   * https://w3c.github.io/web-locks/#dom-lockmanager-request
   */
  function requestMethodSteps(host, args, extended) {
    if (args.length < 2) {
      throw new TypeError(`request() needs a name and a callback, but got ${args.length} argument${args.length === 1 ? '' : 's'}`);
    }
    const scope = convert.scope(args[0], extended);
    // Step 1. If options was not passed, then let options be a new LockOptions dictionary with default members.
    const given = args.length > 2;
    const options = convert.lockOptions(given ? args[1] : undefined, extended);
    const callback = convert.callback(given ? args[2] : args[1]);
    if (host.activation?.isAwaited) return delay(host, () => requestSteps(host, scope, options, callback));
    return requestSteps(host, scope, options, callback);
  }

  function requestSteps(host, scope, options, callback) {
    const wait = checkRequest(host, scope, options);
    // Steps 10 to 12 are the entry's.
    return new CallbackEntry(host, scope, options, wait, callback).ask();
  }

  /** https://wicg.github.io/nav-speculation/prerendering.html#extendedattrdef-delaywhileprerendering */
  function delay({ activation }, steps) {
    return new Promise((resolve, reject) => {
      activation.run(() => take(steps, resolve, reject));
    });
  }

  async function take(steps, resolve, reject) {
    try {
      resolve(await steps());
    } catch (error) {
      reject(error);
    }
  }

  /** Steps 2 to 9 of https://w3c.github.io/web-locks/#dom-lockmanager-request: four options enter and leave as one word. */
  function checkRequest(host, scope, options) {
    // Steps 2 to 4. The environment's document is fully active, and it has a lock manager.
    checkEnvironment(host);
    // Step 5. If name starts with U+002D HYPHEN-MINUS (-), reject with a NotSupportedError.
    if (typeof scope === 'string' ? isReserved(scope) : some(scope, isReserved)) {
      throw exception('NotSupportedError', "names that start with '-' are reserved: choose another first character");
    }
    return checkOptions(options);
  }

  function checkOptions({ steal, ifAvailable, mode, signal, timeout, overtake }) {
    // Step 6. If both steal and ifAvailable are true, reject with a NotSupportedError.
    if (steal && ifAvailable) {
      throw exception('NotSupportedError', "'steal' and 'ifAvailable' cannot be used together: a steal never waits");
    }
    // Step 7. If steal is true and mode is not "exclusive", reject with a NotSupportedError.
    if (steal && mode !== 'exclusive') throw exception('NotSupportedError', "'steal' needs mode 'exclusive'");
    // Step 8. If signal exists, and either of steal or ifAvailable is true, reject with a NotSupportedError.
    // A timeout is the same kind of limit.
    if (steal || ifAvailable) {
      const option = steal ? 'steal' : 'ifAvailable';
      const limit = signal !== undefined ? 'signal' : timeout !== undefined ? 'timeout' : undefined;
      if (limit !== undefined) {
        throw exception('NotSupportedError', `'${limit}' and '${option}' cannot be used together: such a request never waits`);
      }
    }
    if (overtake && (mode !== 'shared' || steal || ifAvailable)) {
      throw exception('NotSupportedError', "'overtake' is for requests of mode 'shared' that wait");
    }
    // Step 9. If signal exists and is aborted, reject with its abort reason.
    if (signal?.aborted) throw signal.reason;
    if (steal) return WAIT.steal;
    // A timeout of nothing tries once.
    if (ifAvailable || timeout === 0) return WAIT.ifAvailable;
    return overtake ? WAIT.overtake : WAIT.queue;
  }

  /** Steps 3 and 4 of `request()`, 2 and 3 of `query()`. */
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
    // Steps 4 to 6. Snapshot the lock state, after all that was asked before.
    return new Promise((resolve, reject) => {
      take(async () => ownSnapshot(await host.transport.query()), resolve, reject);
    });
  }

  /** A snapshot made of this realm's objects: a transport's may be of another realm. */
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
   * A manager for an environment.
   *
   * @param host.transport    who decides, see entry.js
   * @param host.refusal      returns why this environment may not have locks, `{ name, message }`, if so
   * @param host.activation   what a page that nobody sees yet waits for, see activation.js
   * @param host.listen       calls an algorithm when a signal aborts, and returns how to stop that
   * @param host.trace        rejects with an error that has the stack of those who await, see node.js
   * @param host.observer     is told of start, grant, miss and end of every request
   * @param createLock        makes what a callback is given
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
    // For the surfaces that add to the standard's.
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
    },
  };
  return interfaces;
}

/** Of every manager its host, and the interfaces that it was made with. */
const environments = new KeptWeakMap();

/** Where a manager of this package belongs: { host, interfaces }. Nothing for anything else. */
export function environmentOf(manager) {
  return environments.get(manager);
}

function isReserved(name) {
  return name.charCodeAt(0) === 0x2d;
}

/**
 * Makes a class what WebIDL makes of an interface: its members are enumerable, its tag is its name.
 * https://webidl.spec.whatwg.org/#interface-prototype-object
 */
function defineInterface(Class, name, members) {
  nameClass(Class, name);
  const { prototype } = Class;
  for (const member of members) Object.defineProperty(prototype, member, { enumerable: true });
  Object.defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
}

/** Names a class by a literal: bundlers rename what its source calls it. */
export function nameClass(Class, name) {
  Object.defineProperty(Class, 'name', { value: name, configurable: true });
}

/**
 * Checks the arguments of `install()`, which are the same from every entry point.
 *
 * @returns the host of the locks that are given; nothing for the options of `connect()`
 */
export function readInstallation(target, given) {
  if (typeof target?.Promise !== 'function') {
    throw new TypeError("install() needs a global object; that of a node:vm context is vm.runInContext('globalThis', context)");
  }
  if (given === undefined) return undefined;
  const environment = environmentOf(given);
  if (environment !== undefined) return environment.host;
  // Locks of others, such as a browser's own, must not pass for options without an address.
  if (typeof given !== 'object' || given === null || typeof given.request === 'function') {
    throw new TypeError('install() needs locks of this package, or the options of connect() such as { url }');
  }
  return undefined;
}

/**
 * Of every global object what its installations replaced, the last one last: { replaced, close }.
 */
const installations = new KeptWeakMap();

/** Defines a property, and notes what was there. */
function replaceProperty(replaced, object, key, descriptor) {
  append(replaced, { object, key, descriptor: Object.getOwnPropertyDescriptor(object, key) });
  Object.defineProperty(object, key, descriptor);
}

/**
 * Undoes the last installation on a global object. Resolves when the connection that it made is
 * closed.
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
 * Puts the interfaces, and `navigator.locks`, where WebIDL puts them.
 * https://w3c.github.io/web-locks/#navigator-mixins
 *
 * @param openHost gives the host of the manager; called when the target may have one
 * @param isOwn    whether the host was made for this, and ends with it
 * @param extend   puts more in place: it is given how to define a property
 */
export function installInterfaces(target, { LockManager, Lock, createManager }, openHost, isOwn = false, extend = undefined) {
  // [SecureContext]: where there are no secure contexts, as in Node, everything is one.
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
  // Where there is no Navigator, the object itself takes the attribute.
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

/** Whether an object is a Navigator: a realm may have several one after the other. A getter of the platform knows its objects. */
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
