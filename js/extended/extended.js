// The extensions of this package: scopes, limits, timeouts, tags, disposable handles, and queries
// for blockers and deadlocks. They have a class of their own, so that LockManager has the
// standard's members alone.

import { KeptMap } from '../internal/collections.js';
import { Entry } from '../standard/entry.js';
import { Drain } from './drain.js';
import { Leaders, Leadership } from './election.js';
import { CAPACITY, LockEvents } from './events.js';
import { Forgotten } from './forgotten.js';
import { nameClass } from '../standard/locks.js';

/** Replaces `resolve` and `reject` of a settled promise. */
function settleNothing() {}

/** A request without a callback: its promise resolves with a handle that holds the lock. */
class HandleEntry extends Entry {
  begin() {
    // A handle never starts out lost.
    if (this.loss !== undefined) this.failTraced(this.lossError(this.loss));
    else this.resolve(this.host.handle(this));
  }

  /** Drops all references to the handle, so that it can be garbage collected and reported. */
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
 * Creates the extended classes. In addition to the members for createManager(), their hosts have
 *
 *   openPartition(name)  opens a host in another lock space
 *   partitions()         optional: creates the map of the lock spaces that partition() returned
 *   close()              closes the connection to a service
 *   warn(text)           optional: prints a warning
 *   traceHandles         whether the warning about a handle has the stack of its creation
 *
 * @param interfaces the result of createInterfaces()
 */
export function createExtended({ LockManager, Lock, createManager, internals }) {
  const { Promise, TypeError, convert, requestMethodSteps, checkRequest, checkEnvironment, hostOf, entryOf, outerOf, secret } = internals;

  /** A lock with the extended members. */
  class ExtendedLock extends Lock {
    /** All names, sorted; frozen. */
    get scope() {
      const { scope } = entryOf(this);
      return typeof scope === 'string' ? Object.freeze([scope]) : scope;
    }

    /** The largest number of holders beside which it is held, if it has a limit above 1. */
    get limit() {
      return entryOf(this).limit;
    }

    /** Aborts when the lock is lost. Its reason is an AbortError with the loss as `cause`. */
    get signal() {
      return entryOf(this).lossSignal;
    }

    /** Whether this client holds the lock. Reads the clock, in case the lease has ended. */
    get held() {
      return entryOf(this).isHeld;
    }

    /**
     * Gives the lock a mode that allows more holders, in place and with its token: shared, or the
     * limit in the options.
     */
    async downgrade(options = undefined) {
      await entryOf(this).downgrade(convert.sharing(options));
    }

    /** Resolves with true when a request waits for the lock, with false if the lock ends first. */
    async contended() {
      return entryOf(this).contention();
    }

    /** The token of this grant, larger than that of every earlier grant. */
    get fencingToken() {
      return entryOf(this).token;
    }

    /** Returns the text that console.log() shows in Node. */
    [INSPECT](_depth, options, inspect) {
      const { name, mode, isHeld, token } = entryOf(this);
      return `${this.constructor.name} ${inspect({ name, mode, held: isHeld, fencingToken: token }, options)}`;
    }
  }

  /** A lock that is held until it is released or disposed of. */
  class LockHandle extends ExtendedLock {
    /** Releases the lock. True if it was held; a second release has no effect. */
    release() {
      return entryOf(this).releaseAndEnd();
    }

    // Does not call release(), which a caller may have replaced.
    [DISPOSE]() {
      entryOf(this).releaseAndEnd();
    }

    async [ASYNC_DISPOSE]() {
      entryOf(this).releaseAndEnd();
    }
  }

  class Locks extends LockManager {
    #partitions;

    /** Extends the standard's by an array of names, `limit`, `timeout`, `tag` and `overtake`. */
    request(scope, options, callback = undefined) {
      try {
        return requestMethodSteps(hostOf(this), arguments, true);
      } catch (error) {
        return Promise.reject(error);
      }
    }

    /**
     * Requests a lock and resolves with a handle: `await using lock = await locks.hold('name')`.
     * Null with `ifAvailable` if the lock is not available.
     */
    hold(scope, options = undefined) {
      try {
        const host = hostOf(this);
        const names = convert.scope(scope, true);
        const converted = convert.lockOptions(options, true);
        converted.outer = outerOf(host, converted);
        if (converted.reentrant) throw new TypeError("'reentrant' needs a callback: a handle of an outer lock cannot be released apart from it");
        const entry = new HandleEntry(host, names, converted, checkRequest(host, names, converted));
        if (host.traceHandles) entry.made = new Error(`hold of '${entry.name}'`).stack;
        return entry.submit();
      } catch (error) {
        return Promise.reject(error);
      }
    }

    /** Campaigns for the leadership of a name. Resolves with it when this candidate is elected. */
    async elect(name, value, options = undefined) {
      const scope = convert.domString(name, 'the name');
      const tag = convert.domString(value, 'the value');
      return new Leadership(await this.hold(scope, { signal: options?.signal, timeout: options?.timeout, tag }), tag);
    }

    /** Observes the leaders of a name: an async iterator. */
    leaders(name) {
      return new Leaders(this, convert.domString(name, 'the name'));
    }

    /** Returns the snapshot of `query()` with all details of each lock and request. */
    async inspect() {
      const host = hostOf(this);
      checkEnvironment(host);
      return await host.transport.inspect();
    }

    /** Returns the ids of the locks and requests that block the request with this id. */
    async blockers(id) {
      const host = hostOf(this);
      checkEnvironment(host);
      return await host.transport.blockers(id);
    }

    /** Returns the cycles of requests that wait for each other, the certain ones first. */
    async deadlocks() {
      const host = hostOf(this);
      checkEnvironment(host);
      return await host.transport.deadlocks();
    }

    /** Releases all locks held on a name, also those of others. Resolves with their number. */
    async forceRelease(name) {
      const host = hostOf(this);
      checkEnvironment(host);
      return await host.transport.forceRelease(convert.domString(name, 'the name'));
    }

    /**
     * Stops this client gracefully: its later requests fail. Resolves when its last pending request
     * has ended, and its last lock is released.
     */
    async drain() {
      await hostOf(this).observer.begin(Promise);
    }

    /** Subscribes to all later events of this lock space: an async iterator, in engine order. */
    events(options = undefined) {
      const host = hostOf(this);
      checkEnvironment(host);
      const stream = new LockEvents(host.transport, convert.capacity(options, CAPACITY));
      host.transport.subscribe(stream);
      return stream;
    }

    /** Returns the lock space of this name, which is independent of all others. */
    partition(name) {
      const host = hostOf(this);
      const key = convert.domString(name, 'the name');
      this.#partitions ??= host.partitions?.() ?? new KeptMap();
      const known = this.#partitions.get(key);
      if (known !== undefined) return known;
      const locks = createLocks(host.openPartition(key));
      this.#partitions.set(key, locks);
      return locks;
    }

    /** The lock space: clients of one process or service with equal spaces share locks. */
    get space() {
      return hostOf(this).transport.space;
    }

    /** The id of this client in queries. */
    get clientId() {
      return hostOf(this).transport.clientId;
    }
  }

  /** The locks of a service, over a connection of their own. */
  class ServiceLocks extends Locks {
    /** The state of the connection to the service. */
    get connection() {
      return hostOf(this).transport.connection;
    }

    /** Closes the connection. All locks are lost, and the service releases them at once. */
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
  nameClass(Leadership, 'Leadership');
  nameClass(Leaders, 'Leaders');

  const forgotten = new Forgotten();

  function createHandle(entry) {
    const handle = new LockHandle(secret, entry);
    forgotten.add(handle, entry);
    return handle;
  }

  function createLocks(host, Class = Locks) {
    const complete = { ...host, handle: createHandle, observer: new Drain(host.observer) };
    return createManager(complete, Class, (entry) => new ExtendedLock(secret, entry));
  }

  return { createLocks, createServiceLocks: (host) => createLocks(host, ServiceLocks), ExtendedLock, LockHandle };
}
