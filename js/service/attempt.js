// The attempts to reach a service: which address is dialled, when, and for how long.

import { Backoff } from './backoff.js';
import { Route } from './route.js';

/** Limit for the connection and the first answer. */
const GREETING_MS_MAX = 10_000;

/** A hello that was late replaces a connection once in this time. */
const REPLACED_FORGOTTEN_MS = 60_000;

export class Attempt {
  /** The hello of this connection once it was sent: { sentAt, resume }. */
  hello;
  #options;
  #output;
  #session;
  #isNeeded;
  #route;
  #backoff;
  /** When an attempt without an answer has failed, and after how many milliseconds. */
  #answerBy = Infinity;
  #within;
  /** When the service is dialled again. */
  #retryAt = Infinity;
  /** When a later connection replaced one of this client the last time. */
  #replacedAt = -Infinity;
  /** The first connection, until it succeeds or fails: { since, hasMoved }. */
  #opening;

  /** @param isNeeded returns whether a client needs the service */
  constructor(options, output, session, isNeeded) {
    this.#options = options;
    this.#output = output;
    this.#session = session;
    this.#isNeeded = isNeeded;
    this.#route = new Route(options.addresses, options.hidesToken, options.parse, output.random());
    this.#backoff = new Backoff(options.pauseMax, options.pauseMin);
  }

  /** Whether the first connection is being made. */
  get isFirst() {
    return this.#opening !== undefined;
  }

  /** Returns the members of a hello by which a node leads the client on. */
  way(now) {
    return this.#route.way(now);
  }

  /** When an answer or another attempt is due. */
  get deadline() {
    return Math.min(this.#answerBy, this.#retryAt);
  }

  /** Whether a session may go on over another connection after this fault. */
  goesOn(code, now) {
    if (code !== 'replaced') return code === 'shutting-down' || code === 'moved';
    // A hello of an earlier attempt was late in the network. The next time it is another client
    // with this secret, and one of them must lose the locks.
    const isFirst = now - this.#replacedAt >= REPLACED_FORGOTTEN_MS;
    this.#replacedAt = now;
    return isFirst;
  }

  /** Makes the first connection: dials each address once. */
  open(now) {
    this.#opening = { since: now, hasMoved: false };
    this.connect(now);
  }

  /** Makes the first of several attempts. */
  start(now) {
    this.#backoff.restart();
    this.#backoff.nextPause();
    this.connect(now);
  }

  connect(now) {
    this.hello = undefined;
    this.#retryAt = Infinity;
    this.#expect(this.#route.limit(this.#session.lease?.length ?? this.#options.lease), now);
    this.#output.dial(this.#route.target.address, this.#isNeeded());
  }

  /** Notes that the hello is sent now. */
  greet(resume, now) {
    const { isResumable, lease } = this.#session;
    // The lease of a session goes by while an owner sends nothing.
    const limit = isResumable && lease !== undefined ? this.#route.welcomeLimit(lease.length, now) : GREETING_MS_MAX;
    if (this.#route.isCluster) this.#expect(Math.min(limit, GREETING_MS_MAX), now);
    this.hello = { sentAt: now, resume };
  }

  /** The service has answered the hello. Returns whether this was the first connection. */
  welcomed() {
    const wasFirst = this.isFirst;
    this.#route.reached();
    this.#answerBy = Infinity;
    this.#opening = undefined;
    return wasFirst;
  }

  /** Notes that a connection lasted, which is a reason to hurry. */
  settle(lasted) {
    if (this.#backoff.after(lasted)) this.#route.settled();
  }

  /** A session that cannot be resumed is no reason to wait. */
  forgive() {
    this.#backoff.restart();
  }

  /** Whether no further attempt can succeed. */
  isFinal(failure) {
    return this.#route.isFinal(failure, this.hello !== undefined);
  }

  /**
   * Chooses the next address after an attempt that failed: `at-once`, `pause`, or `over`. The first
   * connection dials each once; a cluster without an owner is dialled for as long as a service may
   * take to answer.
   */
  failed(failure, now) {
    const opening = this.#opening;
    const isAtOnce = this.#route.failed(failure, this.hello !== undefined, now);
    if (opening === undefined || isAtOnce) return isAtOnce ? 'at-once' : 'pause';
    opening.hasMoved ||= failure.code === 'moved';
    return opening.hasMoved && now - opening.since < GREETING_MS_MAX ? 'pause' : 'over';
  }

  /** Chooses the next address after the node that had welcomed the session sent `moved`. */
  moved(to, now) {
    return this.#route.moved(to, now) ? 'at-once' : 'pause';
  }

  /** Dials the next address at once, or after a pause. */
  next(when, now) {
    if (when === 'at-once') {
      this.connect(now);
      return;
    }
    // The next owner of the locks grants nothing until all sessions have claimed theirs.
    const isAwaited = this.#route.isCluster && (this.#session.isResumable || this.#isNeeded());
    const pause = isAwaited ? this.#backoff.nextInTakeover(this.#output.random()) : this.#backoff.nextPause();
    // A session must be resumed within its lease.
    this.#retryAt = now + Math.min(pause, (this.#session.lease?.length ?? Infinity) / 2);
  }

  /** Dials at once if the next attempt is due later. */
  hurry(now) {
    if (this.#retryAt !== Infinity) this.start(now);
  }

  /** Ends the attempt, and all attempts that are due later. */
  stop() {
    this.hello = undefined;
    this.#answerBy = Infinity;
    this.#retryAt = Infinity;
  }

  /** The first connection has failed. */
  giveUp() {
    this.#opening = undefined;
  }

  /** Dials again if that is due. Returns the failure of an attempt without an answer, if so. */
  elapsed(now) {
    if (now >= this.#retryAt) this.connect(now);
    if (now < this.#answerBy) return undefined;
    return { code: 'unreachable', message: `no answer within ${this.#within / 1000} s` };
  }

  /** Gives up the attempt if the service has not answered within so many milliseconds. */
  #expect(limit, now) {
    this.#answerBy = now + limit;
    this.#within = limit;
  }
}
