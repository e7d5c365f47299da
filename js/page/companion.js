// Locks of a service beside the browser's own: a request is granted when it holds both. So it also
// excludes code of the same origin that uses the browser's locks.
//
// Every page requests the service's lock first, so two pages cannot deadlock on the two halves. The
// service and the browser each decide which request holds their own lock.

import { KeptWeakMap } from '../internal/collections.js';
import { ServiceTransport } from '../service/io/transport.js';
import { WAIT } from '../standard/entry.js';

export class CompanionTransport extends ServiceTransport {
  #native;
  #pairs = new KeptWeakMap();
  /** The half at the service. */
  #inner = { release: (pair) => super.release(pair), abort: (pair, isTimeout) => super.abort(pair, isTimeout) };

  /** @param native the browser's own LockManager */
  constructor(session, client, partition, native) {
    super(session, client, partition);
    this.#native = native;
  }

  request(entry) {
    const pair = new Pair(entry, this.#inner, this.#native);
    this.#pairs.set(entry, pair);
    super.request(pair);
  }

  release(entry) {
    return this.#pairs.get(entry).release();
  }

  abort(entry, isTimeout) {
    this.#pairs.get(entry).abort(isTimeout);
  }

  async downgrade({ host, name }) {
    const message = `the lock '${name}' is one of the browser's own too, which cannot be downgraded: release it, then request the other mode`;
    throw host.exception('NotSupportedError', message);
  }

  /** Watches the service's lock. Waiters for the browser's own lock do not count. */
  watchContention(entry) {
    super.watchContention(this.#pairs.get(entry));
  }
}

/** One request in both: an entry for the service's transport, and a caller of the browser. */
class Pair {
  /** Set by the transport. */
  id = 0;
  #entry;
  #inner;
  #native;
  #controller = new AbortController();
  /** Functions that release the browser's locks, one for each held lock. */
  #releases = [];
  #isGranted = false;
  #isOver = false;

  constructor(entry, inner, native) {
    this.#entry = entry;
    this.#inner = inner;
    this.#native = native;
  }

  get scope() {
    return this.#entry.scope;
  }

  get mode() {
    return this.#entry.mode;
  }

  get limit() {
    return this.#entry.limit;
  }

  get wait() {
    return this.#entry.wait;
  }

  get steal() {
    return this.#entry.steal;
  }

  get maxHold() {
    return this.#entry.maxHold;
  }

  get tag() {
    return this.#entry.tag;
  }

  get traceparent() {
    return this.#entry.traceparent;
  }

  get loss() {
    return this.#entry.loss;
  }

  set loss(cause) {
    this.#entry.loss = cause;
  }

  set thief(thief) {
    this.#entry.thief = thief;
  }

  get watchesContention() {
    return this.#entry.watchesContention;
  }

  // ---- outcomes from the service

  /** Requests the browser's locks one after the other, in scope order; the service's is held. */
  async granted(token) {
    const { scope } = this;
    const names = typeof scope === 'string' ? [scope] : scope;
    for (let index = 0; index < names.length; index++) {
      const outcome = await this.#requestNative(names[index]);
      if (this.#isOver) return;
      if (outcome === 'held') continue;
      this.#end();
      this.#inner.release(this);
      if (outcome === 'unavailable') this.#entry.unavailable();
      else this.#entry.refused(outcome);
      return;
    }
    this.#isGranted = true;
    this.#entry.granted(token);
  }

  unavailable() {
    this.#entry.unavailable();
  }

  refused(refusal) {
    this.#entry.refused(refusal);
  }

  aborted(cause) {
    this.#entry.aborted(cause);
  }

  contended() {
    this.#entry.contended();
  }

  lost(cause) {
    if (this.#isOver) return;
    this.#end();
    if (this.#isGranted) this.#entry.lost(cause);
    else this.#entry.aborted(cause);
  }

  // ---- calls of the client

  release() {
    if (this.#isOver) return false;
    this.#end();
    return this.#inner.release(this);
  }

  abort(isTimeout) {
    this.#end();
    this.#inner.abort(this, isTimeout);
  }

  #end() {
    this.#isOver = true;
    this.#controller.abort();
    for (let index = 0; index < this.#releases.length; index++) this.#releases[index]();
  }

  // ---- the browser's lock

  /** Resolves in a task of the browser: with `held`, `unavailable`, or the refusal. */
  #requestNative(name) {
    const { mode, wait } = this;
    const options = { mode };
    // The browser steals in exclusive mode alone, and has no limits.
    if (wait === WAIT.steal || wait === WAIT.stealAll) Object.assign(options, { steal: true, mode: 'exclusive' });
    else if (wait === WAIT.ifAvailable) options.ifAvailable = true;
    else options.signal = this.#controller.signal;
    return new Promise((resolve) => {
      let isHeld = false;
      const done = this.#native.request(name, options, (lock) => {
        if (lock === null) return resolve('unavailable');
        isHeld = true;
        resolve('held');
        return this.#isOver ? undefined : new Promise((release) => {
          this.#releases[this.#releases.length] = release;
        });
      });
      this.#watch(done, resolve, () => isHeld);
    });
  }

  /** Waits for the end of a request to the browser: a failure after its grant is a steal. */
  async #watch(done, resolve, isHeld) {
    try {
      await done;
    } catch ({ name, message }) {
      if (this.#isOver) return resolve('over');
      if (!isHeld()) return resolve({ name, message: `the browser's own lock: ${message}` });
      // Another client stole the browser's lock.
      this.#end();
      this.#inner.release(this);
      if (this.#isGranted) this.#entry.lost('Stolen');
      else this.#entry.aborted('Stolen');
    }
  }
}
