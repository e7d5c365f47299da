// One session with a lock service, and the connection that carries it.
//
//   entries ──▶ transport (service.js) ──▶ session ──▶ WebSocket ──▶ service
//      ▲                                      │
//      └────────────── wants ◀────────────────┘
//
// The client keeps no sent messages. After a reconnect it derives all messages from its live
// requests, and sends a restarted service all of them.

import { LockConnection } from './connection.js';
import { Lease, Moment } from './lease.js';
import { append, each, mapped, plainList } from './lists.js';
import { Pauses } from './pauses.js';
import { describeFailure } from './refusals.js';
import { Silence } from './silence.js';
import { Subscriptions } from './subscriptions.js';
import { Wants } from './wants.js';
import { causeOf, hear, opened, say, VERSION } from './wire.js';

// The states of the link.
const UP = 'up';
const DOWN = 'down';
/** The client still retries, and its patience has ended. */
const HOPELESS = 'hopeless';
const REFUSED = 'refused';
/** The page is frozen or cached, and the client does not retry. */
const ASLEEP = 'asleep';
const CLOSED = 'closed';

/** The states of `locks.connection`. */
const STATES = {
  [UP]: 'connected',
  [DOWN]: 'unreachable',
  [HOPELESS]: 'unreachable',
  [REFUSED]: 'refused',
  [ASLEEP]: 'suspended',
  [CLOSED]: 'closed',
};

/** Limit for the connection and the first answer. */
const GREETING_MS_MAX = 10_000;
/** The least of that for a session whose lease goes by. */
const GREETING_LEASED_MS_MIN = 250;
/** For the service to close after our last message. */
const CLOSING_MS_MAX = 1000;

/** Longest pause between two attempts to connect. */
const PAUSE_MS_MAX = 1000;

/** The longest delay that setTimeout takes. */
const DELAY_MS_MAX = 2 ** 31 - 1;

/** The failure before the end of the first attempt. */
const NO_ANSWER = { code: 'unreachable', message: 'there was no answer yet' };

/** WebSocket.OPEN: implementations differ in where they define it. */
const OPEN = 1;

export class Session {
  #options;
  #platform;
  #wants;
  #subscriptions = new Subscriptions();
  connection = new LockConnection(() => this.#lease);
  #link = DOWN;
  /** The failure of the last attempt. */
  #failure;
  /** The failure for which requests are refused at once, if any. */
  #refusal;
  /** Counts connections: messages of earlier ones are ignored. */
  #turn = 0;
  #socket;
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
  /** Partitions by the number of the client. */
  #clients;
  /** The promise of open() for the first connection, { resolve, reject }. */
  #opening;
  #downSince = new Moment();
  #upSince;
  #pauses;
  #alarm;
  #retry;
  #greeting;
  /** The addresses of the service. */
  #route;
  /** Whether a session of this service has one partition. */
  #isCluster = false;
  /** Whether the hello was sent over this connection. */
  #isGreeted = false;

  /**
   * @param options.createRoute makes what chooses the address to dial
   * @param options.dial        makes a WebSocket, or a promise of one that is not open yet; its `failure` may say why it closed.
   *                            Is told the address, and whether something needs the service
   * @param options.beside      another session of the same cluster, if there is one
   * @param options.start       whether `dial` starts a service that is needed
   * @param options.pauseMax    longest pause between two attempts, in milliseconds
   * @param options.showPresence listens at a path, over a Unix socket: { path, isShown, close() }
   * @param options.partition   of client 0
   * @param options.placed      returns the service's name of a partition; the same name by default
   * @param options.lease       the requested lease in milliseconds
   * @param options.patience    milliseconds for which the service may be unreachable
   * @param platform.deliveries delivers outcomes to entries, each in a turn of its own
   * @param platform.messagesHaveTurns whether each message of a socket has a turn of its own
   * @param platform.exception  creates errors
   * @param platform.keepAlive  sets whether the event loop must stay alive
   */
  constructor(options, platform) {
    this.#options = options;
    this.#platform = platform;
    this.#clients = [options.partition];
    this.#route = options.createRoute();
    this.#isCluster = options.beside !== undefined;
    this.#origin = options.beside?.origin;
    this.#silence = new Silence(options.patience);
    this.#pauses = new Pauses(options.pauseMax ?? PAUSE_MS_MAX);
    this.#wants = new Wants(platform, () => this.check());
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
    this.#downSince = new Moment();
    this.#connect();
    this.#arm();
  }

  clientId(client) {
    return `${this.#number}.${client}`;
  }

  /** Returns the lock space of a client: its web origin and its partition. */
  spaceOf(client) {
    return Object.freeze({ origin: this.#origin, partition: this.#placed(this.#clients[client]) });
  }

  get partition() {
    return this.#options.partition;
  }

  get origin() {
    return this.#origin;
  }

  /** Whether further partitions take sessions of their own. */
  get hasOnePartition() {
    return this.#isCluster && this.#link !== CLOSED && this.#link !== REFUSED;
  }

  openClient(partition) {
    const client = append(this.#clients, partition) - 1;
    if (this.#link === UP) this.#say(say.open(client, this.#placed(partition)));
    return client;
  }

  request(client, entry) {
    this.check();
    const wasNeeded = this.#isNeeded;
    if (this.#refusal === undefined) this.#say(this.#wants.request(client, entry));
    else this.#wants.refuse(entry, describeFailure(this.#refusal));
    if (!wasNeeded) this.#need();
  }

  release(entry) {
    this.check();
    const released = this.#wants.release(entry);
    if (released) this.#say(say.release(entry.id));
    return released;
  }

  abort(entry) {
    if (this.#wants.abort(entry)) this.#say(say.abort(entry.id));
  }

  watchContention(entry) {
    this.#say(this.#wants.watchContention(entry));
  }

  subscribe(client, stream) {
    if (this.#link === REFUSED || this.#link === CLOSED) stream.fail(this.#error(this.#refusal));
    else this.#say(this.#subscriptions.add(client, stream));
  }

  unsubscribe(client, stream) {
    this.#say(this.#subscriptions.remove(client, stream));
  }

  /** Counts waits for something other than an answer. */
  keepAlive(more) {
    this.#wants.wait(more);
  }

  /** The current outage of the service, if any: { ms, failure }. */
  get outage() {
    if (this.#link === UP || this.#link === CLOSED) return undefined;
    return { ms: this.#downSince.age, failure: describeFailure(this.#failure ?? NO_ANSWER) };
  }

  /** Sends a query. Resolves with its answer, which follows those of all earlier messages. */
  ask(client, question) {
    return new this.#platform.Promise((resolve, reject) => {
      this.check();
      const wasNeeded = this.#isNeeded;
      if (this.#refusal === undefined) this.#say(this.#wants.ask(client, question, resolve, reject));
      else reject(this.#error(this.#refusal));
      if (!wasNeeded) this.#need();
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
    if (this.#link === CLOSED) return;
    // Holders must see the loss before the service can grant their locks to other clients.
    this.#lapse('ClientEnded');
    this.#end(CLOSED, { code: 'closed', message: 'the connection to the lock service was closed: connect again' }, 'ClientEnded');
    await this.#leave();
  }

  /** Sends `bye` for a process that ends now. */
  farewell() {
    this.#say(say.bye);
    this.#socket?.flush?.();
  }

  /** Suspends a frozen or cached page: it loses its locks, and its requests stay pending. */
  suspend() {
    if (this.#link === CLOSED || this.#link === REFUSED || this.#link === ASLEEP) return;
    this.#lapse('Suspended');
    this.#leave();
    this.#stopTimers();
    this.#refusal = undefined;
    this.#become(ASLEEP);
  }

  resume() {
    this.check();
    if (this.#link !== ASLEEP) return;
    this.#become(DOWN);
    this.#pauses.restart();
    this.start();
  }

  // ---- the life of a connection

  async #connect() {
    const turn = ++this.#turn;
    this.#isGreeted = false;
    this.#expect(this.#route.limit(this.#lease?.length ?? this.#options.lease));
    let socket;
    try {
      socket = await this.#options.dial(this.#route.target.address, this.#isNeeded);
    } catch (failure) {
      if (turn === this.#turn) this.#broken(failure);
      return;
    }
    socket.onerror = () => {};
    if (turn === this.#turn) this.#listen(socket);
    else drop(socket);
  }

  /** Gives up the connection if the service has not answered within so many milliseconds. */
  #expect(limit) {
    this.#clearTimer(this.#greeting);
    const late = { code: 'unreachable', message: `no answer within ${limit / 1000} s` };
    this.#greeting = this.#after(limit, () => this.#broken(late));
  }

  #listen(socket) {
    this.#socket = socket;
    let hello;
    socket.onopen = () => {
      // The lease of a session goes by while an owner says nothing.
      const isUrgent = this.#secret !== undefined && this.#lease !== undefined;
      const limit = isUrgent ? Math.max(this.#lease.length / 4, GREETING_LEASED_MS_MIN) : GREETING_MS_MAX;
      if (this.#route.isCluster) this.#expect(Math.min(limit, GREETING_MS_MAX));
      this.#isGreeted = true;
      hello = { said: new Moment(), resume: this.#resumption() };
      const { partition, lease } = this.#options;
      socket.send(say.hello(this.#placed(partition), lease, hello.resume, this.#route.target.carries));
    };
    const { deliveries, messagesHaveTurns } = this.#platform;
    const heard = ({ data }) => {
      const message = typeof data === 'string' ? hear(data) : undefined;
      if (message === undefined) this.#broken({ code: 'handshake', message: 'it sent a malformed message' });
      else if (this.#link === UP) this.#hear(message);
      else this.#greeted(message, hello);
    };
    socket.onmessage = messagesHaveTurns ? (event) => deliveries.within(heard, event) : heard;
    socket.onclose = ({ reason }) => {
      this.#broken(socket.failure ?? { code: 'unreachable', message: reason || 'the connection was closed' });
    };
  }

  #placed(partition) {
    const { placed } = this.#options;
    return placed === undefined ? partition : placed(partition);
  }

  /** Returns the member `resume` of a hello, if the session can be resumed. */
  #resumption() {
    this.check();
    if (this.#secret === undefined) return undefined;
    return {
      session: this.#number,
      secret: this.#secret,
      epoch: this.#epoch,
      clients: plainList(mapped(this.#clients, (partition, client) => opened(client, this.#placed(partition)))),
      alive: this.#wants.alive,
    };
  }

  /** Handles the first message of the service. */
  #greeted({ word, body }, hello) {
    if (word === 'error') this.#broken(body);
    else if (word !== 'welcome' || hello === undefined) this.#broken({ code: 'handshake', message: `it began with '${word}'` });
    else if (body.version !== VERSION) this.#broken({ code: 'version', message: otherVersion(body.version) });
    else if ((body.epoch ?? 0) < this.#epoch) this.#broken({ code: 'handshake', message: outdated(body.epoch ?? 0, this.#epoch) });
    else this.#welcome(body, hello);
  }

  /** Begins or resumes the session, and sends all that the service must know. */
  #welcome(welcome, { said, resume }) {
    const resumed = (welcome.resumed || welcome.claim) && resume?.session === welcome.session ? resume : undefined;
    const claims = resumed !== undefined && welcome.claim === true;
    // Only an answer to the whole claim extends the lease of the earlier service.
    const answered = claims ? (this.#lease?.said ?? said) : said;
    if (claims) this.check();
    if (claims && this.#secret === undefined) return;
    if (resumed === undefined) this.#lapse('ServiceGone');
    const leaseMs = welcome['lease-ms'];
    this.#number = welcome.session;
    this.#epoch = welcome.epoch ?? 0;
    this.#origin = welcome.origin;
    this.#isCluster = welcome.cluster === true;
    this.#route.reached();
    this.#wants.limits = welcome.limits ?? {};
    this.#secret = welcome.secret || undefined;
    this.#lease = leaseMs === undefined ? undefined : new Lease(leaseMs, answered);
    this.#clearTimer(this.#greeting);
    this.#refusal = undefined;
    this.#become(UP);
    this.#upSince = new Moment();
    this.#showPresence(welcome.presence);
    this.#sayAll(resumed, claims);
    this.#arm();
    this.#takeOpening()?.resolve();
  }

  /** Opens the socket of presence at the path of the service, unless it is open. */
  #showPresence(path) {
    if (path === this.#presence?.path) return;
    this.#hidePresence();
    if (path !== undefined) this.#presence = this.#options.showPresence?.(path, () => this.#say(say.present));
  }

  #hidePresence() {
    this.#presence?.close();
    this.#presence = undefined;
  }

  /** Sends all that the service does not know. It knows the contents of the hello. */
  #sayAll(resumed, claims) {
    const sayEach = (texts) => each(texts, (text) => this.#say(text));
    if (this.#presence?.isShown) this.#say(say.present);
    // Every hello opens client 0.
    const known = resumed?.clients.length ?? 1;
    each(this.#clients, (partition, client) => {
      if (client >= known) this.#say(say.open(client, this.#placed(partition)));
    });
    if (claims) {
      sayEach(this.#wants.claim());
      // The pong is the answer to the claim.
      if (this.#lease !== undefined) this.#say(say.ping(this.#lease.ping()));
    } else {
      each(resumed?.alive ?? [], (id) => {
        if (!this.#wants.has(id)) this.#say(say.abort(id));
      });
    }
    sayEach(this.#subscriptions.restart());
    if (!claims) sayEach(this.#wants.unanswered());
    sayEach(this.#wants.questions());
  }

  /** Handles a connection that broke or failed. */
  #broken(failure) {
    this.#failure = failure;
    if (this.#link === UP) {
      this.#reconnect();
    } else if (failure.code === 'unknown-session' && this.#opening === undefined) {
      // Whoever wanted to go on with a session may begin another one at once.
      if (this.#secret !== undefined) this.#pauses.restart();
      this.#lapse('ServiceGone');
      this.#reconnect();
    } else if (!this.#route.isFinal(failure, this.#isGreeted)) {
      this.#goOn(failure, this.#route.failed(failure, this.#isGreeted));
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
    this.#abandon();
    opening.reject(this.#error(failure));
  }

  #dial(atOnce) {
    if (atOnce) {
      this.#connect();
      return;
    }
    // The next owner of the locks grants nothing until all sessions have claimed theirs.
    const isAwaited = this.#route.isCluster && (this.#secret !== undefined || this.#isNeeded);
    const pause = isAwaited ? this.#pauses.nextInTakeover() : this.#pauses.next();
    this.#retry = this.#after(pause, () => this.#connect());
  }

  /** Leaves this connection alone and tries another one, by and by. */
  #reconnect(atOnce = false) {
    this.#abandon();
    if (this.#link === UP) {
      this.#downSince = new Moment();
      this.#link = DOWN;
      this.#settle();
    }
    if (this.#link === DOWN) this.#become(DOWN, this.#failure);
    // Without a secret the session cannot be resumed.
    if (this.#secret === undefined) this.#lapse('ServiceGone');
    this.#arm();
    this.#dial(atOnce);
  }

  /** A connection that lasted is a reason to hurry. */
  #settle() {
    if (this.#pauses.after(this.#upSince.age)) this.#route.settled();
  }

  #abandon() {
    this.#turn++;
    this.#clearTimer(this.#greeting);
    this.#clearTimer(this.#retry);
    if (this.#socket !== undefined) drop(this.#socket);
    this.#socket = undefined;
  }

  /** Sends `bye` and closes the connection. */
  async #leave() {
    const socket = this.#socket;
    this.#turn++;
    this.#socket = undefined;
    if (socket === undefined) return;
    this.#wants.wait(1);
    await new Promise((resolve) => {
      const limit = this.#after(CLOSING_MS_MAX, resolve);
      socket.onopen = null;
      socket.onmessage = null;
      socket.onclose = () => {
        this.#clearTimer(limit);
        resolve();
      };
      if (socket.readyState === OPEN) socket.send(say.bye);
      socket.close();
    });
    drop(socket);
    this.#wants.wait(-1);
  }

  // ---- messages

  #hear({ word, body }) {
    // A grant that was in a buffer when the lease ended does not count.
    this.check();
    if (this.#link !== UP) return;
    this.#silence.hear();
    if (word === 'granted') this.#wants.granted(body);
    else if (word === 'pending') this.#wants.placed(body);
    else if (word === 'unavailable') this.#wants.unavailable(body);
    else if (word === 'lost') this.#lost(body);
    else if (word === 'refused') this.#refused(body);
    else if (word === 'answer') this.#wants.answered(body);
    else if (word === 'contended') this.#wants.contended(body);
    else if (word === 'listening') this.#subscriptions.answered(body);
    else if (word === 'event') this.#subscriptions.event(body);
    else if (word === 'pong') this.#pong(body);
    else if (word === 'error') this.#over(body);
  }

  #lost({ id, cause }) {
    // Until the release the service remembers the loss.
    if (this.#wants.lost(id, causeOf(cause))) this.#say(say.release(id));
  }

  #refused({ id, fault, cycle }) {
    each(this.#wants.refused(id, fault, cycle), (released) => this.#say(say.release(released)));
  }

  #pong(number) {
    this.#lease?.pong(number);
    // Set here and not by the timer itself: browsers throttle chains of timers in hidden pages.
    this.#arm();
  }

  /** The service ends the connection, and the session unless it goes on with a successor. */
  #over({ code, to }) {
    const goesOn = (code === 'shutting-down' || code === 'moved') && this.#secret !== undefined;
    if (!goesOn) this.#lapse(code === 'lease-lapsed' ? 'LeaseLapsed' : 'ServiceGone');
    this.#settle();
    this.#reconnect(goesOn && code === 'moved' && this.#route.moved(to));
  }

  /** Sends a message if there is a connection. After a reconnect #sayAll() replaces it. */
  #say(text) {
    if (this.#link === UP && text !== undefined) this.#socket.send(text);
  }

  // ---- the end of a session

  /** Ends the session: all held locks are lost. */
  #lapse(cause) {
    this.#secret = undefined;
    this.#lease = undefined;
    this.#hidePresence();
    this.#wants.lapse(cause);
  }

  /** Fails all pending requests and queries, for now or for ever. */
  #end(link, failure, cause) {
    this.#refusal = failure;
    this.#become(link, failure);
    if (link !== HOPELESS) this.#subscriptions.end(cause === undefined ? this.#error(failure) : undefined);
    this.#wants.end(describeFailure(failure), this.#error(failure), cause);
    if (link !== HOPELESS) this.#stopTimers();
  }

  /** Changes the state of the link, and notifies listeners of the connection. */
  #become(link, failure) {
    this.#link = link;
    if (link === UP) this.#failure = undefined;
    const notify = this.connection.change(STATES[link], failure && this.#error(failure));
    // During open() no program has the connection yet.
    if (notify !== undefined && this.#opening === undefined) this.#platform.deliveries.add(notify);
  }

  #error(failure) {
    const { name, message, cause } = describeFailure(failure);
    return this.#platform.exception(name, message, cause);
  }

  /** Whether a client needs the service, or it was never reached. */
  get #isNeeded() {
    return this.#upSince === undefined || this.#wants.isNeeded;
  }

  /** Starts the patience when a client begins to need a service that it may start. */
  #need() {
    if (!this.#options.start || this.#link !== DOWN) return;
    this.#downSince = new Moment();
    this.#arm();
  }

  /** The milliseconds until the patience with an unreachable service ends. */
  get #patience() {
    const isWaited = this.#link === DOWN && (this.#isNeeded || !this.#options.start);
    return isWaited ? this.#options.patience - this.#downSince.age : Infinity;
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
    this.#clearTimer(this.#alarm);
    const lease = this.#lease;
    const next = Math.min(
      lease?.left ?? Infinity,
      this.#link === UP ? (lease?.pingInterval ?? Infinity) : Infinity,
      this.#link === UP ? (lease?.silentIn ?? Infinity) : Infinity,
      this.#link === UP && lease === undefined ? this.#silence.interval : Infinity,
      this.#patience,
    );
    if (next !== Infinity) this.#alarm = this.#after(next, this.#wake);
  }

  #wake = () => {
    this.check();
    // A network can silently drop one connection and carry another, which resumes the session.
    if (this.#link === UP && this.#lease?.silentIn <= 0) this.#reconnect();
    if (this.#link === UP && this.#lease !== undefined) this.#say(say.ping(this.#lease.ping()));
    const { patience } = this.#options;
    if (this.#link === UP && this.#lease === undefined) this.#breakSilence(patience);
    if (this.#patience <= 0) {
      this.#end(HOPELESS, { code: 'unreachable', message: `no answer for ${patience / 1000} s` });
    }
    this.#arm();
  };

  /** Fails requests that wait for a connected and silent service. Held locks stay held. */
  #breakSilence(patience) {
    const due = this.#silence.look(this.#wants.isWaiting);
    if (due === 'ping') this.#say(say.ping(0));
    if (due !== 'end') return;
    const failure = { code: 'unreachable', message: `it is connected, and sent no message for ${patience / 1000} s` };
    // Aborts these requests at the service, in case it continues.
    each(this.#wants.end(describeFailure(failure), this.#error(failure)), (id) => this.#say(say.abort(id)));
  }

  #after(milliseconds, work) {
    return this.#platform.setTimeout(work, Math.min(Math.max(Math.ceil(milliseconds), 0), DELAY_MS_MAX));
  }

  #clearTimer(timer) {
    if (timer !== undefined) this.#platform.clearTimeout(timer);
  }

  #stopTimers() {
    each([this.#alarm, this.#retry, this.#greeting], (timer) => this.#clearTimer(timer));
  }
}

/** Closes an abandoned connection, without a handshake if possible. */
function drop(socket) {
  socket.onopen = null;
  socket.onmessage = null;
  socket.onclose = null;
  if (socket.terminate === undefined) socket.close();
  else socket.terminate();
}

function outdated(epoch, known) {
  return `its epoch is ${epoch}, and a service of epoch ${known} was here before: end the older one, or restore its state`;
}

function otherVersion(theirs) {
  return `the service speaks version ${theirs} of the protocol, this client ${VERSION}`;
}
