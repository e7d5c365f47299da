// What this package adds to the standard: scopes, timeouts, tags, handles to dispose of, and questions about who waits for whom.
//
// All of it is on a class of its own, so that LockManager stays what the standard says.

import { KeptMap } from './collections.js';
import { Entry } from './entry.js';
import { CAPACITY, LockEvents } from './events.js';
import { Forgotten } from './forgotten.js';
import { nameClass } from './locks.js';

/** For a promise that is settled already. */
function settleNothing() {}

/** A request without a callback: its promise gives a handle, which holds the lock until it is released. */
class HandleEntry extends Entry {
  begin() {
    // Never a handle that is lost already.
    if (this.loss !== undefined) this.failTraced(this.lossError(this.loss));
    else this.resolve(this.host.handle(this));
  }

  /**
   * Lets nothing that the lock space knows keep the handle alive, so that its end can be noticed.
   */
  dropHandle() {
    this.promise = undefined;
    this.resolve = settleNothing;
    this.reject = settleNothing;
  }

  miss() {
    this.succeed(null);
  }
}

// Not every browser has these yet.
const DISPOSE = Symbol.dispose ?? Symbol('dispose');
const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol('asyncDispose');

/** https://nodejs.org/api/util.html#custom-inspection-functions-on-objects */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/**
 * On hosts that have, beside what createManager() wants,
 *
 *   openPartition(name)  makes a host in another lock space
 *   close()              ends the connection, for those of a service
 *   warn(text)           tells the programmer, where that is possible
 *   traceHandles         whether a warning of a handle says where it was made
 *
 * @param interfaces what createInterfaces() made
 */
export function createExtended({ LockManager, Lock, createManager, internals }) {
  const { Promise, convert, requestMethodSteps, checkRequest, checkEnvironment, hostOf, entryOf, secret } = internals;

  /** A lock with all that is known of it. */
  class ExtendedLock extends Lock {
    /** All names, sorted; frozen. */
    get scope() {
      const { scope } = entryOf(this);
      return typeof scope === 'string' ? Object.freeze([scope]) : scope;
    }

    /** Aborts when the lock is lost. Its reason is an AbortError, whose `cause` says why. */
    get signal() {
      return entryOf(this).lossSignal;
    }

    /** Whether it is held, as far as this client knows: asks the clock whether the lease is over. */
    get held() {
      return entryOf(this).isHeld;
    }

    /**
     * Resolves with true when a request waits for this lock, and with false when the lock is over
     * before.
     */
    async contended() {
      return entryOf(this).contention();
    }

    /** Larger than that of every grant before. */
    get fencingToken() {
      return entryOf(this).token;
    }

    /** What console.log() shows in Node. */
    [INSPECT](_depth, options, inspect) {
      const { name, mode, isHeld, token } = entryOf(this);
      return `${this.constructor.name} ${inspect({ name, mode, held: isHeld, fencingToken: token }, options)}`;
    }
  }

  /** A lock that is held until it is released, or disposed of. */
  class LockHandle extends ExtendedLock {
    /** True if it was held until now. A second release does nothing. */
    release() {
      return entryOf(this).letGo();
    }

    // Not by way of release(), which a caller may have replaced.
    [DISPOSE]() {
      entryOf(this).letGo();
    }

    async [ASYNC_DISPOSE]() {
      entryOf(this).letGo();
    }
  }

  class Locks extends LockManager {
    #partitions = new KeptMap();

    /** As the standard's, and: an array of names as a scope, and the options `timeout`, `tag` and `overtake`. */
    request(scope, options, callback = undefined) {
      try {
        return requestMethodSteps(hostOf(this), arguments, true);
      } catch (error) {
        return Promise.reject(error);
      }
    }

    /** Requests a lock and gives a handle to it: `await using lock = await locks.hold('name')`. Null if it is not available. */
    hold(scope, options = undefined) {
      try {
        const host = hostOf(this);
        const names = convert.scope(scope, true);
        const converted = convert.lockOptions(options, true);
        const entry = new HandleEntry(host, names, converted, checkRequest(host, names, converted));
        if (host.traceHandles) entry.made = new Error(`hold of '${entry.name}'`).stack;
        return entry.ask();
      } catch (error) {
        return Promise.reject(error);
      }
    }

    /** As `query()`, with everything that is known of each lock and request. */
    async inspect() {
      const host = hostOf(this);
      checkEnvironment(host);
      return await host.transport.inspect();
    }

    /** The ids of the locks and of the requests that the request with this id waits for. */
    async blockers(id) {
      const host = hostOf(this);
      checkEnvironment(host);
      return await host.transport.blockers(id);
    }

    /** Clients that wait for each other at this moment. */
    async deadlocks() {
      const host = hostOf(this);
      checkEnvironment(host);
      return await host.transport.deadlocks();
    }

    /** Takes away all locks held on a name, from whoever holds them. Resolves with how many there were. */
    async forceRelease(name) {
      const host = hostOf(this);
      checkEnvironment(host);
      return await host.transport.forceRelease(convert.domString(name, 'the name'));
    }

    /**
     * Every event of this lock space from now on, in order: an async iterator. What this client
     * asks later is among them.
     */
    events(options = undefined) {
      const host = hostOf(this);
      checkEnvironment(host);
      const stream = new LockEvents(host.transport, convert.capacity(options, CAPACITY));
      host.transport.subscribe(stream);
      return stream;
    }

    /** Another lock space, by its name: the same for all who ask for it, and independent of every other. */
    partition(name) {
      const key = convert.domString(name, 'the name');
      const known = this.#partitions.get(key);
      if (known !== undefined) return known;
      const locks = createLocks(hostOf(this).openPartition(key));
      this.#partitions.set(key, locks);
      return locks;
    }

    /** Which lock space this is: clients whose spaces are equal share locks, in a process or at one service. */
    get space() {
      return hostOf(this).transport.space;
    }

    /** Who this client is in queries. */
    get clientId() {
      return hostOf(this).transport.clientId;
    }
  }

  /** The locks of a service, over a connection of their own. */
  class ServiceLocks extends Locks {
    /** Whether the service can be reached, and since when. */
    get connection() {
      return hostOf(this).transport.connection;
    }

    /** Ends the connection: all locks are lost, and the service knows. */
    async close() {
      await hostOf(this).close();
    }

    async [ASYNC_DISPOSE]() {
      await hostOf(this).close();
    }
  }

  nameClass(ExtendedLock, 'ExtendedLock');
  nameClass(LockHandle, 'LockHandle');
  nameClass(Locks, 'Locks');
  nameClass(ServiceLocks, 'ServiceLocks');
  nameClass(LockEvents, 'LockEvents');

  const forgotten = new Forgotten();

  function createHandle(entry) {
    const handle = new LockHandle(secret, entry);
    forgotten.add(handle, entry);
    return handle;
  }

  function createLocks(host, Class = Locks) {
    const complete = { ...host, handle: createHandle };
    return createManager(complete, Class, (entry) => new ExtendedLock(secret, entry));
  }

  return { createLocks, createServiceLocks: (host) => createLocks(host, ServiceLocks), ExtendedLock, LockHandle };
}
