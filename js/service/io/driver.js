// Drives the machine of a session: its clock, its timer, and one WebSocket at a time.

import { now } from '../../internal/clock.js';
import { Timer } from '../../internal/timer.js';
import { LockConnection } from './connection.js';
import { CLOSED, DOWN, GAVE_UP, REFUSED, SUSPENDED, UP } from '../link.js';
import { Machine } from '../machine.js';
import { drawSecret } from './secret.js';
import { read, write } from '../wire.js';

/** For the service to close after our last message. */
const CLOSING_MS_MAX = 1000;

/** WebSocket.OPEN: implementations differ in where they define it. */
const OPEN = 1;

/** The states of `locks.connection`. */
const STATES = {
  [UP]: 'connected',
  [DOWN]: 'unreachable',
  [GAVE_UP]: 'unreachable',
  [REFUSED]: 'refused',
  [SUSPENDED]: 'suspended',
  [CLOSED]: 'closed',
};

export class Driver {
  machine;
  /** The state of the connection, for programs. */
  connection = new LockConnection(() => this.#lease());
  options;
  #platform;
  #timer;
  /** When the timer elapses, and whether it was set by its own end. */
  #dueAt = Infinity;
  #isChained = false;
  /** Counts connections: messages of earlier ones are ignored. */
  #turn = 0;
  #socket;
  #closing;
  /** The promise of open(), { resolve, reject }. */
  #opening;
  /** The socket of presence, over a Unix socket. */
  #presence;
  #waiting = 0;

  /**
   * @param options              those of the machine, and
   * @param options.dial         makes a WebSocket to an address, or a promise of an unopened one
   * yet; its `failure` is the reason why it closed, if known
   * @param options.showPresence listens at a path, over a Unix socket: { path, isShown, close() }
   * @param platform.deliveries  delivers outcomes to entries, each in a turn of its own
   * @param platform.messagesHaveTurns whether each message of a socket has a turn of its own
   * @param platform.exception   creates errors
   * @param platform.keepAlive   sets whether the event loop must stay alive
   * @param platform.ended       is called when the session has ended for ever
   */
  constructor(options, platform) {
    this.options = options;
    this.#platform = platform;
    this.#timer = new Timer(platform);
    this.machine = new Machine(options, this.#output(), now());
  }

  #output() {
    const { deliveries, exception, ended } = this.#platform;
    const driver = this;
    return {
      dial: (address, isNeeded) => this.#dial(address, isNeeded),
      send: (text) => this.#socket?.send(text),
      drop: () => drop(this.#detach()),
      leave: () => {
        this.#closing = this.#leave(this.#detach());
      },
      deliver: (deliver, entry, value) => deliveries.add(deliver, entry, value),
      error: ({ name, message, cause }) => exception(name, message, cause),
      wait: (more) => this.wait(more),
      check: () => this.check(),
      changed: (state, error, isShown) => {
        const notify = this.connection.change(STATES[state], error);
        if (notify !== undefined && isShown) deliveries.add(notify);
      },
      opened: () => this.#opening.resolve(),
      failed: (error) => this.#opening.reject(error),
      ended: () => ended?.(this),
      presence: (path) => this.#present(path),
      get isPresent() {
        return driver.#presence?.isShown;
      },
      // A session over a Unix socket ends with its process.
      draw: this.options.showPresence === undefined ? drawSecret : undefined,
      random: Math.random,
      time: Date.now,
    };
  }

  /** Connects. Rejects if the first attempt fails. */
  async open() {
    this.wait(1);
    try {
      await new Promise((resolve, reject) => {
        this.#opening = { resolve, reject };
        this.step('open');
      });
    } finally {
      this.wait(-1);
    }
  }

  /** Connects, and retries until an attempt succeeds. */
  start() {
    this.step('start');
  }

  request(client, entry) {
    this.machine.request(client, entry, now());
    this.#arm();
  }

  async downgrade(entry, sharing) {
    this.wait(1);
    try {
      return await this.machine.downgrade(entry, sharing, now());
    } finally {
      this.wait(-1);
    }
  }

  release(entry) {
    return this.machine.release(entry, now());
  }

  /** Sends a query. Resolves with its answer. */
  ask(client, question) {
    return new this.#platform.Promise((resolve, reject) => {
      this.machine.ask(client, question, resolve, reject, now());
      this.#arm();
    });
  }

  /** The current outage of the service, if any: { ms, failure }. */
  get outage() {
    return this.machine.link.outage(now());
  }

  check() {
    if (this.machine.lockDeadline !== Infinity && this.machine.check(now())) this.#arm();
  }

  /** Counts calls that wait, which keep the event loop alive. */
  wait(more) {
    const before = this.#waiting;
    this.#waiting = before + more;
    if ((before === 0) !== (this.#waiting === 0)) this.#platform.keepAlive?.(this.#waiting > 0);
  }

  /** Ends all locks and requests. Resolves when the service has closed, or does not answer. */
  async close() {
    this.step('close');
    await this.#closing;
  }

  /** Sends `bye` for a process that ends now. */
  farewell() {
    this.machine.farewell();
    this.#socket?.flush?.();
  }

  /** Makes a step of the machine. */
  step(name) {
    this.machine[name](now());
    this.#arm();
  }

  // ---- time

  #lease() {
    const { lease } = this.machine.session;
    return lease && { length: lease.length, left: lease.until - now() };
  }

  /**
   * Sets the timer, unless it elapses early enough. One that was set by its own end is set again:
   * browsers throttle chains of timers in hidden pages.
   */
  #arm() {
    const { deadline } = this.machine;
    if (deadline >= this.#dueAt && !this.#isChained && deadline !== Infinity) return;
    this.#isChained = false;
    this.#dueAt = deadline;
    if (deadline === Infinity) this.#timer.clear();
    else this.#timer.set(deadline - now(), this.#wake);
  }

  #wake = () => {
    this.#dueAt = Infinity;
    this.step('elapsed');
    this.#isChained = true;
  };

  // ---- the WebSocket

  /** Dials an address, instead of the earlier connection. */
  async #dial(address, isNeeded) {
    drop(this.#detach());
    const turn = this.#turn;
    let socket;
    try {
      socket = await this.options.dial(address, isNeeded);
    } catch (failure) {
      // A dial that fails at once is within a step of the machine.
      await undefined;
      if (turn === this.#turn) this.#broken(failure);
      return;
    }
    socket.onerror = () => {};
    if (turn === this.#turn) this.#listen(socket);
    else drop(socket);
  }

  #listen(socket) {
    this.#socket = socket;
    const { deliveries, messagesHaveTurns } = this.#platform;
    const received = ({ data }) => {
      const message = typeof data === 'string' ? read(data) : undefined;
      if (message === undefined) {
        this.#broken({ code: 'handshake', message: 'it sent a malformed message' });
        return;
      }
      this.machine.received(message, now());
      this.#arm();
    };
    socket.onopen = () => this.step('opened');
    socket.onmessage = messagesHaveTurns ? (event) => deliveries.within(received, event) : received;
    socket.onclose = ({ reason }) => this.#broken(socket.failure ?? { code: 'unreachable', message: reason || 'the connection was closed' });
  }

  #broken(failure) {
    this.machine.broken(failure, now());
    this.#arm();
  }

  /** Returns the socket, whose messages are ignored from now on. */
  #detach() {
    const socket = this.#socket;
    this.#turn++;
    this.#socket = undefined;
    return socket;
  }

  /** Sends `bye` and closes. Resolves when the service has closed, or does not answer. */
  async #leave(socket) {
    if (socket === undefined) return;
    this.wait(1);
    await new Promise((resolve) => {
      const limit = new Timer(this.#platform);
      limit.set(CLOSING_MS_MAX, resolve);
      socket.onopen = null;
      socket.onmessage = null;
      socket.onclose = () => {
        limit.clear();
        resolve();
      };
      if (socket.readyState === OPEN) socket.send(write.bye);
      socket.close();
    });
    drop(socket);
    this.wait(-1);
  }

  /** Opens the socket of presence at the path of the service, unless it is open. */
  #present(path) {
    if (path === this.#presence?.path) return;
    this.#presence?.close();
    this.#presence = path === undefined ? undefined : this.options.showPresence?.(path, () => this.machine.shown());
  }
}

/** Closes an abandoned connection, without a handshake if possible. */
function drop(socket) {
  if (socket === undefined) return;
  socket.onopen = null;
  socket.onmessage = null;
  socket.onclose = null;
  if (socket.terminate === undefined) socket.close();
  else socket.terminate();
}
