// One session with a lock service, and the connection that carries it.
//
//   entries ──▶ transport (service.js) ──▶ session ──▶ link ──▶ WebSocket ──▶ service
//      ▲                                      │
//      └────────────── wants ◀────────────────┘
//
// The client keeps no sent messages. After a reconnect it derives all messages from its live
// requests, and sends a restarted service all of them.

import { Clients } from './clients.js';
import { KeptSet } from './collections.js';
import { Lease, Moment } from './lease.js';
import { Link } from './link.js';
import { each } from './lists.js';
import { Pauses } from './pauses.js';
import { describeFailure, isOfClient } from './refusals.js';
import { drawSecret } from './secret.js';
import { Silence } from './silence.js';
import { ASLEEP, CLOSED, DOWN, HOPELESS, REFUSED, Standing, UP } from './standing.js';
import { Subscriptions } from './subscriptions.js';
import { Timer } from './timer.js';
import { Wants } from './wants.js';
import { causeOf, VERSION, write } from './wire.js';

/** Limit for the connection and the first answer. */
const GREETING_MS_MAX = 10_000;
/** The least of that for a session whose lease goes by. */
const GREETING_LEASED_MS_MIN = 250;

/** The number of pings against silence. Those of a lease are numbered from 1. */
const SIGN_OF_LIFE = 0;

/**
 * How often in a row a service may end a session because of the client's messages, until programs
 * get the fault.
 */
const FAULTS_MAX = 2;
/** A session that lasted so long had another cause than the one before. */
const FAULTS_FORGOTTEN_MS = 60_000;

/** Longest pause between two attempts to connect. */
const PAUSE_MS_MAX = 1000;

export class Session {
  #options;
  #platform;
  #wants;
  #subscriptions = new Subscriptions();
  #standing;
  #link;
  /** The secret of the next session, from its first hello to a welcome. */
  #chosen;
  /** The hello of this connection once it was sent: { sentAt, resume }. */
  #hello;
  /** The number of the session at the service, or of the last session. */
  #number = 0;
  /** The web origin of the lock space, if any. */
  #origin;
  /** The secret by which the session can be resumed. */
  #secret;
  /** The largest epoch seen: a service with a smaller epoch has a successor. */
  #epoch = 0;
  /** The socket of presence, over a Unix socket. */
  #presence;
  #lease;
  #silence;
  #clients;
  /** The promise of open() for the first connection, { resolve, reject }. */
  #opening;
  #pauses;
  #alarm;
  /** The timer of the silence. */
  #quiet;
  #retry;
  /** The addresses of the service. */
  #route;
  /** Whether a session of this service has one partition. */
  #isCluster = false;
  /** Counts the sessions in a row that the service ended because of this client's messages. */
  #faults = 0;

  /**
   * @param options.createRoute makes what chooses the address to dial
   * @param options.dial        makes a WebSocket to an address, see Link
   * @param options.beside      another session of the same cluster, if there is one
   * @param options.start       whether `dial` starts a service that is needed
   * @param options.pauseMax    longest pause between two attempts, in milliseconds
   * @param options.pauseMin    the first pause after a failed attempt
   * @param options.showPresence listens at a path, over a Unix socket: { path, isShown, close() }
   * @param options.process     describes this process to people on other machines, if it is known
   * @param options.partition   of client 0
   * @param options.placed      returns the service's name of a partition; the same name by default
   * @param options.lease       the requested lease in milliseconds
   * @param options.patience    milliseconds for which the service may be unreachable
   * @param platform.deliveries delivers outcomes to entries, each in a turn of its own
   * @param platform.messagesHaveTurns whether each message of a socket has a turn of its own
   * @param platform.exception  creates errors
   * @param platform.keepAlive  sets whether the event loop must stay alive
   * @param platform.ended      is called when the session has ended for ever
   */
  constructor(options, platform) {
    this.#options = options;
    this.#platform = platform;
    this.#clients = new Clients(options.partition, options.placed);
    this.#route = options.createRoute();
    this.#isCluster = options.beside !== undefined;
    this.#origin = options.beside?.origin;
    this.#silence = new Silence(options.patience);
    this.#pauses = new Pauses(options.pauseMax ?? PAUSE_MS_MAX, options.pauseMin);
    this.#wants = new Wants(platform, () => this.check());
    this.#standing = new Standing(() => this.#lease, platform);
    this.#link = new Link(
      options.dial,
      {
        opened: () => this.#greet(),
        received: (message) => (this.#standing.isUp ? this.#receive(message) : this.#greeted(message)),
        broken: (failure) => this.#broken(failure),
      },
      platform,
    );
    this.#alarm = new Timer(platform);
    this.#quiet = new Timer(platform);
    this.#retry = new Timer(platform);
  }

  /** Connects. Rejects if the first attempt fails. */
  open() {
    return new Promise((resolve, reject) => {
      this.#opening = { resolve, reject, since: new Moment(), hasMoved: false };
      this.#wants.wait(1);
      this.#connect();
    });
  }

  /** Connects, and retries until an attempt succeeds. */
  start() {
    this.#standing.beginOutage();
    this.#connectNow();
    this.#arm();
  }

  /** The state of the connection, for programs. */
  get connection() {
    return this.#standing.connection;
  }

  clientId(client) {
    return `${this.#number}.${client}`;
  }

  /** Returns the lock space of a client: its web origin and its partition. */
  spaceOf(client) {
    return Object.freeze({ origin: this.#origin, partition: this.#clients.placeOf(client) });
  }

  get partition() {
    return this.#options.partition;
  }

  get origin() {
    return this.#origin;
  }

  /** Whether the session has ended for ever. */
  get isOver() {
    return this.#standing.isOver;
  }

  /** Whether further partitions take sessions of their own. */
  get hasOnePartition() {
    return this.#isCluster && !this.#standing.isOver;
  }

  openClient(partition) {
    // While the service is away, its view of the clients is not known.
    if (this.#clients.areMany && this.#standing.isUp) this.#closeIdleClients();
    const client = this.#clients.add(partition);
    this.#send(write.open(client, this.#clients.placeOf(client)));
    return client;
  }

  /** Closes clients without a request, a query and a stream. */
  #closeIdleClients() {
    const busy = new KeptSet();
    this.#wants.addClients(busy);
    this.#subscriptions.addClients(busy);
    each(this.#clients.removeIdle(busy), (text) => this.#send(text));
  }

  /** Returns the number of a client in this partition: the given one if it is still open. */
  keepClient(client, partition) {
    return this.#clients.has(client) ? client : this.openClient(partition);
  }

  partitionOf(client) {
    return this.#clients.partitionOf(client);
  }

  request(client, entry) {
    this.check();
    const wasNeeded = this.#isNeeded;
    if (this.#standing.refusal === undefined) this.#send(this.#wants.request(client, entry, this.#standing.isUp));
    else this.#wants.refuse(entry, describeFailure(this.#standing.refusal));
    if (!wasNeeded) this.#need();
    this.#await();
  }

  release(entry) {
    this.check();
    const released = this.#wants.release(entry);
    if (released !== undefined) this.#send(write.release(entry.id));
    return released === true;
  }

  abort(entry) {
    if (this.#wants.abort(entry)) this.#send(write.abort(entry.id));
  }

  watchContention(entry) {
    this.#send(this.#wants.watchContention(entry));
  }

  subscribe(client, stream) {
    if (this.#standing.isOver) stream.fail(this.#standing.error(this.#standing.refusal));
    else this.#send(this.#subscriptions.add(client, stream));
  }

  unsubscribe(client, stream) {
    this.#send(this.#subscriptions.remove(client, stream));
  }

  /** Counts waits for something other than an answer. */
  keepAlive(more) {
    this.#wants.wait(more);
  }

  /** The current outage of the service, if any: { ms, failure }. */
  get outage() {
    return this.#standing.outage;
  }

  /** Sends a query. Resolves with its answer, which follows those of all earlier messages. */
  ask(client, question) {
    return new this.#platform.Promise((resolve, reject) => {
      this.check();
      const wasNeeded = this.#isNeeded;
      if (this.#standing.refusal === undefined) this.#send(this.#wants.ask(client, question, this.#standing.isUp, resolve, reject));
      else reject(this.#standing.error(this.#standing.refusal));
      if (!wasNeeded) this.#need();
      this.#await();
    });
  }

  /** Loses all locks if the lease has ended. Called often, because timers may not run. */
  check() {
    if (this.#lease === undefined || this.#lease.left > 0) return;
    this.#lapse('LeaseLapsed');
    this.#reconnect();
  }

  /** Ends all locks and requests. Resolves when the service has closed, or does not answer. */
  async close() {
    if (this.#standing.isClosed) return;
    // Holders must see the loss before the service can grant their locks to other clients.
    this.#lapse('ClientEnded');
    this.#end(CLOSED, { code: 'closed', message: 'the connection to the lock service was closed: connect again' }, 'ClientEnded');
    await this.#leave();
  }

  /** Sends `bye` for a process that ends now. */
  farewell() {
    this.#send(write.bye);
    this.#link.flush();
  }

  /** Suspends a frozen or cached page: it loses its locks, and its requests stay pending. */
  suspend() {
    if (this.#standing.isOver || this.#standing.isAsleep) return;
    this.#lapse('Suspended');
    this.#leave();
    this.#stopTimers();
    this.#standing.refusal = undefined;
    this.#become(ASLEEP);
  }

  resume() {
    this.check();
    if (!this.#standing.isAsleep) return;
    this.#become(DOWN);
    this.start();
  }

  /** Dials at once if the next attempt is due later: the network is back. */
  hurry() {
    if (!this.#retry.isSet) return;
    this.#abandon();
    this.#connectNow();
  }

  // ---- the life of a connection

  /** Makes the first of several attempts. */
  #connectNow() {
    this.#pauses.restart();
    this.#pauses.next();
    this.#connect();
  }

  #connect() {
    this.#hello = undefined;
    const limit = this.#route.limit(this.#lease?.length ?? this.#options.lease);
    this.#link.open(this.#route.target.address, this.#isNeeded, limit);
  }

  /** Sends the first message over a new connection. */
  #greet() {
    // The lease of a session goes by while an owner sends nothing.
    const isUrgent = this.#secret !== undefined && this.#lease !== undefined;
    const limit = isUrgent ? Math.max(this.#lease.length / 4, GREETING_LEASED_MS_MIN) : GREETING_MS_MAX;
    if (this.#route.isCluster) this.#link.expect(Math.min(limit, GREETING_MS_MAX));
    const resume = this.#resumption();
    this.#hello = { sentAt: new Moment(), resume };
    // A session over a Unix socket ends with its process.
    const chooses = resume === undefined && this.#options.showPresence === undefined;
    const secret = chooses ? (this.#chosen ??= drawSecret()) : undefined;
    this.#link.greet(write.hello(this.#clients.placeOf(0), this.#options.lease, resume, this.#route.target.carries, secret, this.#options.process));
  }

  /** Returns the member `resume` of a hello, if the session can be resumed. */
  #resumption() {
    this.check();
    if (this.#secret === undefined) return undefined;
    return {
      session: this.#number,
      secret: this.#secret,
      epoch: this.#epoch,
    };
  }

  /** Handles the first message of the service. */
  #greeted({ word, body }) {
    if (word === 'error') this.#broken(body);
    else if (word !== 'welcome' || this.#hello === undefined) this.#broken({ code: 'handshake', message: `it began with '${word}'` });
    else if (body.version !== VERSION) this.#broken({ code: 'version', message: otherVersion(body.version) });
    else if ((body.epoch ?? 0) < this.#epoch) this.#broken({ code: 'handshake', message: outdated(body.epoch ?? 0, this.#epoch) });
    else this.#welcome(body, this.#hello);
  }

  /** Begins or resumes the session, and sends all that the service must know. */
  #welcome(welcome, { sentAt, resume }) {
    const resumed = welcome.resumed === true && resume?.session === welcome.session;
    if (!resumed) this.#lapse('ServiceGone');
    const leaseMs = welcome['lease-ms'];
    this.#number = welcome.session;
    this.#epoch = welcome.epoch ?? 0;
    this.#origin = welcome.origin;
    this.#isCluster = welcome.cluster === true;
    this.#route.reached();
    this.#wants.limits = welcome.limits ?? {};
    this.#secret = welcome.secret || undefined;
    this.#chosen = undefined;
    this.#lease = leaseMs === undefined ? undefined : new Lease(leaseMs, sentAt);
    this.#link.welcomed();
    this.#become(UP);
    this.#silence.restart();
    this.#watchSilence();
    this.#showPresence(welcome.presence);
    this.#sendAll(resumed);
    this.#arm();
    this.#takeOpening()?.resolve();
  }

  /** Opens the socket of presence at the path of the service, unless it is open. */
  #showPresence(path) {
    if (path === this.#presence?.path) return;
    this.#hidePresence();
    if (path !== undefined) this.#presence = this.#options.showPresence?.(path, () => this.#send(write.present));
  }

  #hidePresence() {
    this.#presence?.close();
    this.#presence = undefined;
  }

  /** Sends the whole state. The service ends what the claim of a resumed session does not name. */
  #sendAll(resumed) {
    const sendEach = (texts) => each(texts, (text) => this.#send(text));
    if (this.#presence?.isShown) this.#send(write.present);
    // The hello of a new session has opened client 0.
    sendEach(this.#clients.openFrom(resumed ? 0 : 1));
    if (resumed) sendEach(this.#wants.claim());
    sendEach(this.#subscriptions.restart());
    if (!resumed) sendEach(this.#wants.unanswered());
    sendEach(this.#wants.questions());
  }

  /** Handles a connection that broke or failed. */
  #broken(failure) {
    this.#standing.failure = failure;
    if (this.#standing.isUp) {
      this.#reconnect();
    } else if (failure.code === 'unknown-session' && this.#opening === undefined) {
      // A client that wanted to resume a session may begin another one at once.
      if (this.#secret !== undefined) this.#pauses.restart();
      this.#lapse('ServiceGone');
      this.#reconnect();
    } else if (!this.#route.isFinal(failure, this.#link.isGreeted)) {
      this.#goOn(failure, this.#route.failed(failure, this.#link.isGreeted));
    } else if (this.#opening !== undefined) {
      this.#fail(failure);
    } else {
      this.#lapse('ServiceGone');
      this.#end(REFUSED, failure);
      this.#abandon();
    }
  }

  /**
   * Dials the next address. The first connection dials each once; a cluster without an owner is
   * dialled for as long as a service may take to answer.
   */
  #goOn(failure, atOnce) {
    const opening = this.#opening;
    if (opening === undefined) {
      this.#reconnect(atOnce);
      return;
    }
    opening.hasMoved ||= failure.code === 'moved';
    if (!atOnce && (!opening.hasMoved || opening.since.age >= GREETING_MS_MAX)) {
      this.#fail(failure);
      return;
    }
    this.#abandon();
    this.#dial(atOnce);
  }

  /** The first connection has failed. */
  #fail(failure) {
    const opening = this.#takeOpening();
    this.#end(CLOSED, failure);
    // The service may have begun a session.
    this.#leave();
    opening.reject(this.#standing.error(failure));
  }

  #dial(atOnce) {
    if (atOnce) {
      this.#connect();
      return;
    }
    // The next owner of the locks grants nothing until all sessions have claimed theirs.
    const isAwaited = this.#route.isCluster && (this.#secret !== undefined || this.#isNeeded);
    const pause = isAwaited ? this.#pauses.nextInTakeover() : this.#pauses.next();
    // A session must be resumed within its lease.
    this.#retry.set(Math.min(pause, (this.#lease?.length ?? Infinity) / 2), () => this.#connect());
  }

  /** Leaves this connection alone and tries another one, by and by. */
  #reconnect(atOnce = false) {
    this.#abandon();
    if (this.#standing.isUp) this.#settle();
    if (this.#standing.isUp || this.#standing.isDown) this.#become(DOWN, this.#standing.failure);
    // Without a secret the session cannot be resumed.
    if (this.#secret === undefined) this.#lapse('ServiceGone');
    this.#arm();
    this.#dial(atOnce);
  }

  /** A connection that lasted is a reason to hurry. */
  #settle() {
    const { upFor } = this.#standing;
    if (this.#pauses.after(upFor)) this.#route.settled();
    if (upFor >= FAULTS_FORGOTTEN_MS) this.#faults = 0;
  }

  #abandon() {
    this.#retry.clear();
    this.#link.abandon();
  }

  /** Sends `bye` and closes the connection. The event loop stays alive until then. */
  async #leave() {
    this.#wants.wait(1);
    await this.#link.leave();
    this.#wants.wait(-1);
  }

  // ---- messages

  #receive({ word, body }) {
    // A grant that was in a buffer when the lease ended does not count.
    this.check();
    if (!this.#standing.isUp) return;
    this.#silence.received();
    if (word === 'granted') this.#wants.granted(body);
    else if (word === 'pending') this.#wants.placed(body);
    else if (word === 'unavailable') this.#wants.unavailable(body);
    else if (word === 'lost') this.#lost(body);
    else if (word === 'refused') this.#wants.refused(body.id, body.fault, body.cycle);
    else if (word === 'answer') this.#wants.answered(body);
    else if (word === 'contended') this.#wants.contended(body);
    else if (word === 'listening') this.#subscriptions.answered(body);
    else if (word === 'not-listening') this.#subscriptions.refused(body, this.#standing.error(body.fault));
    else if (word === 'event') this.#subscriptions.event(body);
    else if (word === 'pong') this.#pong(body);
    else if (word === 'error') this.#over(body);
  }

  #lost({ id, cause, thief }) {
    // Until the release the service remembers the loss.
    if (this.#wants.lost(id, causeOf(cause), thief)) this.#send(write.release(id));
  }

  #pong(number) {
    if (number === SIGN_OF_LIFE) return;
    this.#lease?.pong(number);
    // Set here and not by the timer itself: browsers throttle chains of timers in hidden pages.
    this.#arm();
  }

  /** The service ends the connection, and the session unless it goes on with a successor. */
  #over(fault) {
    const { code, to } = fault;
    const goesOn = (code === 'shutting-down' || code === 'moved') && this.#secret !== undefined;
    if (!goesOn) this.#lapse(code === 'lease-lapsed' ? 'LeaseLapsed' : 'ServiceGone');
    this.#settle();
    if (isOfClient(code) && ++this.#faults === FAULTS_MAX) {
      // The next session would begin with the same requests.
      this.#end(REFUSED, fault);
      this.#abandon();
      return;
    }
    this.#reconnect(goesOn && code === 'moved' && this.#route.moved(to));
  }

  /** Sends a message if there is a connection. After a reconnect #sendAll() replaces it. */
  #send(text) {
    if (this.#standing.isUp && text !== undefined) this.#link.send(text);
  }

  // ---- the end of a session

  /** Ends the session: all held locks are lost. */
  #lapse(cause) {
    // The next owner of a slot ends the session that had this secret, and does not wait for it.
    if (this.#isCluster) this.#chosen = this.#secret ?? this.#chosen;
    this.#secret = undefined;
    this.#lease = undefined;
    this.#hidePresence();
    this.#wants.lapse(cause);
  }

  /** Fails all pending requests and queries, for now or for ever. */
  #end(state, failure, cause) {
    const error = this.#standing.error(failure);
    this.#standing.refusal = failure;
    this.#become(state, failure);
    if (state !== HOPELESS) this.#subscriptions.end(cause === undefined ? error : undefined);
    this.#wants.end(describeFailure(failure), error, cause);
    if (state === HOPELESS) return;
    this.#stopTimers();
    this.#platform.ended?.();
  }

  /** Changes the standing. During open() no program has the connection yet. */
  #become(state, failure) {
    if (this.#standing.isUp && state !== UP) this.#wants.disconnected();
    this.#standing.become(state, failure, this.#opening === undefined);
  }

  /** Whether a client needs the service, or it was never reached. */
  get #isNeeded() {
    return !this.#standing.wasUp || this.#wants.isNeeded;
  }

  /** Starts the patience when a client begins to need a service that it may start. */
  #need() {
    if (!this.#options.start || !this.#standing.isDown) return;
    this.#standing.beginOutage();
    this.#arm();
  }

  /** The milliseconds until the patience with an unreachable service ends. */
  get #patience() {
    const isWaited = this.#standing.isDown && (this.#isNeeded || !this.#options.start);
    return isWaited ? this.#options.patience - this.#standing.downFor : Infinity;
  }

  /** Returns the promise of open(), once. */
  #takeOpening() {
    const opening = this.#opening;
    this.#opening = undefined;
    if (opening !== undefined) this.#wants.wait(-1);
    return opening;
  }

  // ---- time

  /** Sets the alarm to the next moment at which a timer is due. */
  #arm() {
    this.#alarm.clear();
    const lease = this.#lease;
    const { isUp } = this.#standing;
    const next = Math.min(
      lease?.left ?? Infinity,
      isUp ? (lease?.pingInterval ?? Infinity) : Infinity,
      isUp ? (lease?.silentIn ?? Infinity) : Infinity,
      this.#patience,
    );
    if (next !== Infinity) this.#alarm.set(next, this.#wake);
  }

  #wake = () => {
    this.check();
    // A network can silently drop one connection and carry another, which resumes the session.
    if (this.#standing.isUp && this.#lease?.silentIn <= 0) this.#reconnect();
    if (this.#standing.isUp && this.#lease !== undefined) this.#send(write.ping(this.#lease.ping()));
    if (this.#patience <= 0) {
      this.#end(HOPELESS, { code: 'unreachable', message: `no answer for ${this.#options.patience / 1000} s` });
    }
    this.#arm();
  };

  /** Begins to measure the silence of the service. */
  #await() {
    if (this.#standing.isUp && this.#silence.begin()) this.#watchSilence();
  }

  #watchSilence() {
    const { dueIn } = this.#silence;
    if (dueIn !== Infinity) this.#quiet.set(dueIn, this.#breakSilence);
  }

  /** Fails requests that wait for a connected and silent service. Held locks stay held. */
  #breakSilence = () => {
    if (!this.#standing.isUp) return;
    const due = this.#silence.look(this.#wants.isWaiting);
    this.#watchSilence();
    if (due === 'ping') this.#send(write.ping(SIGN_OF_LIFE));
    if (due !== 'end') return;
    const failure = { code: 'unreachable', message: `it is connected, and sent no message for ${this.#silence.limit / 1000} s` };
    // Aborts these requests at the service, in case it continues.
    each(this.#wants.end(describeFailure(failure), this.#standing.error(failure)), (id) => this.#send(write.abort(id)));
  };

  #stopTimers() {
    this.#alarm.clear();
    this.#quiet.clear();
    this.#retry.clear();
  }
}

function outdated(epoch, known) {
  return `its epoch is ${epoch}, and a service of epoch ${known} was here before: end the older one, or restore its state`;
}

function otherVersion(theirs) {
  return `the service speaks version ${theirs} of the protocol, this client ${VERSION}`;
}
