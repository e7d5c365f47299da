// A session with a lock service, without clock, timer and socket, as in the crate navlocks-client.
//
//   entries ──▶ transport ──▶ driver ──▶ machine ──▶ output: dial, send, drop, leave
//      ▲                        ▲           │
//      └── deliveries           └─ opened, failed, received, broken, elapsed
//
// The client keeps no sent messages: after a reconnect all follow from its live requests.

import { each } from '../internal/lists.js';
import { Attempt } from './attempt.js';
import { KnownSession, stateOf } from './claim.js';
import { Clients } from './requests/clients.js';
import { Keepalive, SIGN_OF_LIFE } from './keepalive.js';
import { Limits } from './limits.js';
import { CLOSED, DOWN, GAVE_UP, LinkState, REFUSED, SUSPENDED, UP } from './link.js';
import { Queries } from './queries.js';
import { receive } from './receive.js';
import { describeFailure, describeFault, isOfClient, outdated } from './refusals.js';
import { Requests } from './requests.js';
import { Subscriptions } from './subscriptions.js';
import { write } from './wire.js';

/**
 * How often in a row a service may end a session because of the client's messages, until programs
 * get the fault.
 */
const FAULTS_MAX = 2;
/** A session that lasted so long had another cause than the one before. */
const FAULTS_FORGOTTEN_MS = 60_000;

export class Machine {
  /** The session as the client knows it. */
  session;
  clients;
  /** The state of the link, for programs. */
  link;
  #options;
  #output;
  #limits = new Limits();
  #requests;
  #queries;
  #subscriptions = new Subscriptions();
  /** The parts that messages of the service change. */
  #parts;
  #attempt;
  #keepalive;
  /** Counts the sessions in a row that the service ended because of this client's messages. */
  #faults = 0;

  /**
   * @param options.addresses  of the service
   * @param options.hidesToken whether the client has a token that must not be sent in clear
   * @param options.parse      parses an address that a node names
   * @param options.beside     another session of the same cluster, if there is one
   * @param options.start      whether dialling starts a service that is needed
   * @param options.pauseMax   longest pause between two attempts, in milliseconds
   * @param options.pauseMin   the first pause after a failed attempt
   * @param options.process    describes this process to people on other machines, if it is known
   * @param options.partition  of client 0
   * @param options.placed     returns the service's name of a partition; the same name by default
   * @param options.lease      the requested lease in milliseconds
   * @param options.unreachableAfter  milliseconds for which the service may be unreachable
   *
   * @param output.dial(address, isNeeded) replaces the connection
   * @param output.send(text)      sends a message over it
   * @param output.drop()          leaves the connection or the attempt alone
   * @param output.leave()         sends `bye` and closes
   * @param output.deliver(...)    calls a function with an entry and a value, in a turn of its own
   * @param output.error(described) creates an error
   * @param output.wait(more)      counts calls that wait, which keep the event loop alive
   * @param output.check()         calls check()
   * @param output.changed(state, error, isShown) tells the state of the connection
   * @param output.opened(), output.failed(error) tell the end of open()
   * @param output.ended()         tells that the session has ended for ever
   * @param output.presence(path)  listens at a path, or stops; `isPresent` tells whether it does
   * @param output.draw            draws the secret of a session, where the client may choose it
   * @param output.random(), output.time() a number below 1; the time of day
   */
  constructor(options, output, now) {
    this.#options = options;
    this.#output = output;
    this.session = new KnownSession(options.beside);
    this.#requests = new Requests(this.#limits, output);
    this.#queries = new Queries(this.#limits, output);
    this.clients = new Clients(options, this.#limits, (text) => this.#send(text), [this.#requests, this.#queries, this.#subscriptions]);
    this.link = new LinkState(now);
    this.#attempt = new Attempt(options, output, this.session, () => this.#isNeeded);
    this.#keepalive = new Keepalive(options.unreachableAfter);
    this.#parts = {
      session: this.session,
      clients: this.clients,
      requests: this.#requests,
      queries: this.#queries,
      subscriptions: this.#subscriptions,
      output,
      send: (text) => this.#send(text),
      over: (fault, moment) => this.#over(fault, moment),
    };
  }

  /** Connects: dials each address once. */
  open(now) {
    this.#attempt.open(now);
  }

  /** Connects, and retries until an attempt succeeds. */
  start(now) {
    this.link.downSince = now;
    this.#attempt.start(now);
  }

  /** Whether further partitions take sessions of their own. */
  get hasOnePartition() {
    return this.session.isCluster && !this.link.isOver;
  }

  // ---- calls of clients

  request(client, entry, now) {
    this.#begin(client, now, (isSent) => this.#requests.add(client, entry, isSent, now), (failure) => this.#requests.refuse(entry, failure));
  }

  release(entry, now) {
    this.check(now);
    const released = this.#requests.release(entry);
    if (released !== undefined) this.#send(write.end(entry.id));
    return released === true;
  }

  abort(entry, isTimeout) {
    if (this.#requests.abort(entry)) this.#send(this.session.end(entry.id, isTimeout));
  }

  /** Resolves with whether the mode allows as many holders, or more: then the lock has it. */
  downgrade(entry, sharing, now) {
    this.check(now);
    return new Promise((resolve) => {
      this.#send(this.#requests.downgrade(entry, sharing, resolve));
    });
  }

  watchContention(entry) {
    this.#send(this.#requests.watchContention(entry));
  }

  subscribe(client, stream) {
    const refusal = client === undefined || this.link.isOver ? this.#refusalOf(client) : undefined;
    if (refusal !== undefined) stream.fail(this.#output.error(refusal));
    else this.#send(this.#subscriptions.add(client, stream));
  }

  unsubscribe(client, stream) {
    this.#send(this.#subscriptions.remove(client, stream));
  }

  /** Sends a query. Its answer follows those of all earlier messages. */
  ask(client, question, resolve, reject, now) {
    this.#begin(client, now, (isSent) => this.#queries.add(client, question, isSent, resolve, reject), (failure) => reject(this.#output.error(failure)));
  }

  /** Adds a call that waits for the service, unless it is refused. */
  #begin(client, now, add, refuse) {
    this.check(now);
    const { isUp, isDown } = this.link;
    const wasNeeded = this.#isNeeded;
    const refusal = this.#refusalOf(client);
    if (refusal === undefined) this.#send(add(isUp));
    else refuse(refusal);
    // The time begins when a client needs a service that it may start.
    if (!wasNeeded && this.#options.start && isDown) this.link.downSince = now;
    if (isUp) this.#keepalive.begin(now);
  }

  /** Returns why no call of this client can succeed, if so. */
  #refusalOf(client) {
    const { refusal } = this.link;
    if (refusal !== undefined) return describeFailure(refusal);
    return client === undefined ? describeFault(this.clients.excess) : undefined;
  }

  /**
   * Loses the locks whose longest time is over, and all if the lease has ended. Called often,
   * because timers may not run. Returns whether the lease has ended.
   */
  check(now) {
    each(this.#requests.expire(now), (id) => this.#send(write.expired(id)));
    if (this.session.lease === undefined || now < this.session.lease.until) return false;
    this.#lapse('LeaseLapsed');
    if (this.link.isUp || this.#attempt.hello !== undefined) this.#reconnect(now);
    return true;
  }

  /** Ends all locks and requests, and leaves. */
  close(now) {
    if (this.link.state === CLOSED) return;
    // Holders must see the loss before the service can grant their locks to other clients.
    this.#lapse('ClientEnded');
    this.#end(CLOSED, { code: 'closed', message: 'the connection to the lock service was closed: connect again' }, now, 'ClientEnded');
    this.#leave();
  }

  /** Sends `bye` for a process that ends now. */
  farewell() {
    this.#send(write.bye);
  }

  /** Suspends a frozen or cached page: it loses its locks, and its requests stay pending. */
  suspend(now) {
    if (this.link.isOver || this.link.state === SUSPENDED) return;
    this.#lapse('Suspended');
    this.#leave();
    this.link.refusal = undefined;
    this.#become(SUSPENDED, undefined, now);
  }

  resume(now) {
    this.check(now);
    if (this.link.state !== SUSPENDED) return;
    this.#become(DOWN, undefined, now);
    this.start(now);
  }

  /** Dials at once if the next attempt is due later: the network is back. */
  hurry(now) {
    this.#attempt.hurry(now);
  }

  // ---- the life of a connection

  /** The connection is open: sends the first message. */
  opened(now) {
    this.check(now);
    const { resume, secret } = this.session.hello(this.#output.draw);
    this.#attempt.greet(resume, now);
    this.#output.send(write.hello(this.clients.placeOf(0), this.#options.lease, resume, this.#attempt.way(now), secret, this.#options.process));
  }

  /** Handles a message of the service. */
  received(message, now) {
    if (!this.link.isUp) {
      this.#greeted(message, now);
      return;
    }
    // A grant that was in a buffer when the lease ended does not count.
    this.check(now);
    if (!this.link.isUp) return;
    this.#keepalive.received(now);
    receive(this.#parts, message, now);
  }

  /** Handles the first message of the service. */
  #greeted({ word, body }, now) {
    const { hello } = this.#attempt;
    const epoch = body?.epoch ?? 0;
    if (word === 'error') this.broken(body, now);
    else if (word !== 'welcome' || hello === undefined) this.broken({ code: 'handshake', message: `it began with '${word}'` }, now);
    else if (epoch < this.session.epoch) this.broken({ code: 'handshake', message: outdated(epoch, this.session.epoch) }, now);
    else this.#welcome(body, hello, now);
  }

  /** Begins or resumes the session, and sends all that the service must know. */
  #welcome(welcome, { sentAt, resume }, now) {
    const isResumed = welcome.resumed === true && resume?.session === welcome.session;
    if (!isResumed) this.#lapse('ServiceGone');
    else if (welcome.cluster && welcome.epoch > this.session.epoch) this.#requests.endStealsInDoubt();
    this.session.welcomed(welcome, sentAt);
    this.#limits.announced = welcome.limits ?? {};
    this.#become(UP, undefined, now);
    if (this.#isAwaited) this.#keepalive.begin(now);
    this.#output.presence(welcome.presence);
    if (this.#output.isPresent) this.#send(write.present);
    each(stateOf(this.#parts, isResumed, now), (text) => this.#send(text));
    if (this.#attempt.welcomed()) this.#output.opened();
  }

  /** The socket of presence is open. */
  shown() {
    this.#send(write.present);
  }

  /** Handles a connection that broke or failed. */
  broken(failure, now) {
    const { isFirst } = this.#attempt;
    this.link.failure = failure;
    if (this.link.isUp) {
      this.#reconnect(now);
    } else if (failure.code === 'unknown-session' && !isFirst) {
      // A client that wanted to resume a session may begin another one at once.
      if (this.session.isResumable) this.#attempt.forgive();
      this.#lapse('ServiceGone');
      this.#reconnect(now);
    } else if (!this.#attempt.isFinal(failure)) {
      const next = this.#attempt.failed(failure, now);
      if (next === 'over') this.#fail(failure, now);
      else this.#reconnect(now, next);
    } else if (isFirst) {
      this.#fail(failure, now);
    } else {
      this.#refuse(failure, now);
    }
  }

  /** The first connection has failed. */
  #fail(failure, now) {
    this.#end(CLOSED, failure, now);
    // The service may have begun a session.
    this.#leave();
    this.#attempt.giveUp();
    this.#output.failed(this.#output.error(describeFailure(failure)));
  }

  /** No further attempt can succeed. */
  #refuse(failure, now) {
    this.#lapse('ServiceGone');
    this.#end(REFUSED, failure, now);
    this.#drop();
  }

  /** Leaves this connection alone and tries another one, by and by. */
  #reconnect(now, next = 'pause') {
    this.#drop();
    if (this.link.isUp) this.#settle(now);
    if (this.link.isUp || (this.link.isDown && !this.#attempt.isFirst)) this.#become(DOWN, this.link.failure, now);
    if (!this.session.isResumable) this.#lapse('ServiceGone');
    this.#attempt.next(next, now);
  }

  /** A connection that lasted is a reason to hurry. */
  #settle(now) {
    const lasted = now - this.link.upSince;
    this.#attempt.settle(lasted);
    if (lasted >= FAULTS_FORGOTTEN_MS) this.#faults = 0;
  }

  #drop() {
    this.#attempt.stop();
    this.#output.drop();
  }

  #leave() {
    this.#attempt.stop();
    this.#output.leave();
  }

  /** The service ends the connection, and the session unless it goes on with a successor. */
  #over(fault, now) {
    const { code, to } = fault;
    const goesOn = this.#attempt.goesOn(code, now) && this.session.isResumable;
    this.#settle(now);
    if (isOfClient(code) && ++this.#faults === FAULTS_MAX) {
      // The next session would begin with the same requests.
      this.#refuse(fault, now);
      return;
    }
    if (!goesOn) this.#lapse(code === 'lease-lapsed' ? 'LeaseLapsed' : 'ServiceGone');
    this.#reconnect(now, goesOn && code === 'moved' ? this.#attempt.moved(to, now) : 'pause');
  }

  /** Sends a message if there is a connection. After a reconnect the whole state replaces it. */
  #send(text) {
    if (this.link.isUp && text !== undefined) this.#output.send(text);
  }

  // ---- the end of a session

  /** Ends the session: all held locks are lost. */
  #lapse(cause) {
    this.session.lapse();
    this.#output.presence(undefined);
    this.#requests.lapse(cause);
  }

  /** Fails all pending requests and queries, for now or for ever. */
  #end(state, failure, now, cause) {
    const described = describeFailure(failure);
    const error = this.#output.error(described);
    this.link.refusal = failure;
    this.#become(state, failure, now);
    if (state !== GAVE_UP) this.#subscriptions.end(cause === undefined ? error : undefined);
    this.#requests.end(described, cause);
    this.#queries.end(error);
    if (state !== GAVE_UP) this.#output.ended();
  }

  /** Changes the state of the link. During open() no program has the connection yet. */
  #become(state, failure, now) {
    if (this.link.isUp && state !== UP) this.#queries.disconnected();
    this.#keepalive.stop();
    this.link.become(state, now);
    this.#output.changed(state, failure && this.#output.error(describeFailure(failure)), !this.#attempt.isFirst);
  }

  /** Whether a client needs the service, or it was never reached. */
  get #isNeeded() {
    return this.link.upSince === undefined || this.#requests.size + this.#queries.size > 0;
  }

  /** Whether a client waits for an answer of the service. */
  get #isAwaited() {
    return this.#requests.pending + this.#queries.size > 0;
  }

  // ---- time

  /** When the service counts as unreachable. */
  get #unreachableAt() {
    const isWanted = this.link.isDown && (this.#isNeeded || !this.#options.start);
    return isWanted && !this.#attempt.isFirst ? this.link.downSince + this.#options.unreachableAfter : Infinity;
  }

  /** Until when the client may take its locks for held: by its lease and their longest times. */
  get lockDeadline() {
    return Math.min(this.session.lease?.until ?? Infinity, this.#requests.holds.deadline);
  }

  /** The next moment at which elapsed() has an effect. */
  get deadline() {
    const { lease } = this.session;
    const next = Math.min(this.#attempt.deadline, this.lockDeadline);
    if (!this.link.isUp) return Math.min(next, this.#unreachableAt);
    return Math.min(next, lease?.pingAt ?? Infinity, lease?.silentFrom ?? Infinity, this.#keepalive.deadline);
  }

  /** Takes all steps that are due. */
  elapsed(now) {
    this.check(now);
    const late = this.#attempt.elapsed(now);
    if (late !== undefined) this.broken(late, now);
    const { lease } = this.session;
    // A network can silently drop one connection and carry another, which resumes the session.
    if (this.link.isUp && now >= lease?.silentFrom) this.#reconnect(now);
    if (this.link.isUp && now >= lease?.pingAt) this.#send(write.ping(lease.ping(now)));
    if (this.link.isUp) this.#breakSilence(now);
    if (now >= this.#unreachableAt) {
      this.#end(GAVE_UP, { code: 'unreachable', message: `no answer for ${this.#options.unreachableAfter / 1000} s` }, now);
    }
  }

  /** Fails requests that wait for a connected and silent service. Held locks stay held. */
  #breakSilence(now) {
    if (!this.#isAwaited && now >= this.#keepalive.deadline) this.#keepalive.stop();
    const due = this.#keepalive.elapsed(now);
    if (due === 'ping') this.#send(write.ping(SIGN_OF_LIFE));
    if (due !== 'give-up') return;
    const failure = describeFailure({ code: 'unreachable', message: `it is connected, and sent no message for ${this.#keepalive.limit / 1000} s` });
    // Aborts these requests at the service, in case it continues.
    each(this.#requests.end(failure), (id) => this.#send(write.end(id)));
    this.#queries.end(this.#output.error(failure));
  }
}
