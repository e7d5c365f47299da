// The WebSocket of a session: one connection at a time, from its dialling to its end.

import { Timer } from './timer.js';
import { read, write } from './wire.js';

/** For the service to close after our last message. */
const CLOSING_MS_MAX = 1000;

/** WebSocket.OPEN: implementations differ in where they define it. */
const OPEN = 1;

export class Link {
  #dial;
  #session;
  #platform;
  /** Counts connections: messages of earlier ones are ignored. */
  #turn = 0;
  #socket;
  /** Ends an attempt without an answer. */
  #greeting;
  #isGreeted = false;

  /**
   * @param dial             makes a WebSocket, or a promise of one that is not open yet; its
   * `failure` is the reason why it closed, if known
   * @param session.opened   is called when the connection is open
   * @param session.received is called with each message, { word, body }
   * @param session.broken   is called with the failure of the attempt or of the connection
   */
  constructor(dial, session, platform) {
    this.#dial = dial;
    this.#session = session;
    this.#platform = platform;
    this.#greeting = new Timer(platform);
  }

  /** Whether the hello was sent over this connection. */
  get isGreeted() {
    return this.#isGreeted;
  }

  /**
   * Dials an address, instead of the earlier connection.
   *
   * @param isNeeded whether something needs the service
   * @param limit    milliseconds until the service must have answered
   */
  async open(address, isNeeded, limit) {
    const turn = ++this.#turn;
    this.#isGreeted = false;
    this.expect(limit);
    let socket;
    try {
      socket = await this.#dial(address, isNeeded);
    } catch (failure) {
      if (turn === this.#turn) this.#session.broken(failure);
      return;
    }
    socket.onerror = () => {};
    if (turn === this.#turn) this.#listen(socket);
    else drop(socket);
  }

  /** Gives up the attempt if the service has not answered within so many milliseconds. */
  expect(limit) {
    const late = { code: 'unreachable', message: `no answer within ${limit / 1000} s` };
    this.#greeting.set(limit, () => this.#session.broken(late));
  }

  /** Sends the hello. */
  greet(text) {
    this.#isGreeted = true;
    this.send(text);
  }

  /** Notes that the service has answered the hello. */
  welcomed() {
    this.#greeting.clear();
  }

  /** Sends a message, unless the connection was left meanwhile. */
  send(text) {
    this.#socket?.send(text);
  }

  /** Writes what was sent in this turn, for a process that ends now. */
  flush() {
    this.#socket?.flush?.();
  }

  /** Leaves the connection or the attempt alone. */
  abandon() {
    this.#turn++;
    this.#greeting.clear();
    if (this.#socket !== undefined) drop(this.#socket);
    this.#socket = undefined;
  }

  /** Sends `bye` and closes. Resolves when the service has closed, or does not answer. */
  async leave() {
    const socket = this.#socket;
    this.#turn++;
    this.#greeting.clear();
    this.#socket = undefined;
    if (socket === undefined) return;
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
  }

  #listen(socket) {
    this.#socket = socket;
    const { deliveries, messagesHaveTurns } = this.#platform;
    const received = ({ data }) => {
      const message = typeof data === 'string' ? read(data) : undefined;
      if (message === undefined) this.#session.broken({ code: 'handshake', message: 'it sent a malformed message' });
      else this.#session.received(message);
    };
    socket.onopen = () => this.#session.opened();
    socket.onmessage = messagesHaveTurns ? (event) => deliveries.within(received, event) : received;
    socket.onclose = ({ reason }) => {
      this.#session.broken(socket.failure ?? { code: 'unreachable', message: reason || 'the connection was closed' });
    };
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
