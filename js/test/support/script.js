// A scripted service, for tests of clients.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { connect } from 'navlocks';
import { WebSocketServer } from 'ws';
import { scratch } from './service.js';

const LIMITS = { 'message-bytes-max': 1000 };

/** The service's side of one connection. */
export class Peer {
  #socket;
  #received = [];
  #waiting = [];

  constructor(socket) {
    this.#socket = socket;
    this.closed = once(socket, 'close');
    socket.on('message', (text) => {
      const message = JSON.parse(text);
      // Ages differ each time.
      delete message.request?.ms;
      if (this.#waiting.length > 0) this.#waiting.shift()(message);
      else this.#received.push(message);
    });
  }

  receive() {
    return this.#received.length > 0 ? Promise.resolve(this.#received.shift()) : new Promise((resolve) => this.#waiting.push(resolve));
  }

  send(message) {
    this.#socket.send(JSON.stringify(message));
  }

  welcome(more) {
    this.send({ welcome: { service: 'a test', limits: LIMITS, ...more } });
  }

  /** Resolves when the client has handled all messages so far. */
  async settle() {
    const answered = once(this.#socket, 'pong');
    this.#socket.ping();
    await answered;
    // Each outcome is delivered in a turn of its own.
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
  }

  drop() {
    this.#socket.terminate();
  }

  close() {
    this.#socket.close();
  }
}

/** A scripted service, on a Unix socket or TCP. */
export class Script {
  #server = createServer();
  #peers = [];
  #waiting = [];

  constructor() {
    new WebSocketServer({ server: this.#server }).on('connection', (socket) => {
      const peer = new Peer(socket);
      if (this.#waiting.length > 0) this.#waiting.shift()(peer);
      else this.#peers.push(peer);
    });
  }

  async listen(...place) {
    this.#server.listen(...place);
    await once(this.#server, 'listening');
    return `ws://127.0.0.1:${this.#server.address().port}`;
  }

  accept() {
    return this.#peers.length > 0 ? Promise.resolve(this.#peers.shift()) : new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Returns a client and its first connection. */
  async connect(url, welcome, options) {
    const connected = connect(url, options);
    const peer = await this.accept();
    await peer.receive();
    peer.welcome(welcome);
    return [await connected, peer];
  }

  close() {
    this.#server.close();
  }
}

export async function startScript() {
  const script = new Script();
  const folder = scratch();
  const path = join(folder, 'socket');
  await script.listen(path);
  return { script, folder, url: `unix:${path}` };
}

/** Requests a lock and lets the peer grant it. */
export async function hold(locks, peer, name, token) {
  const held = locks.hold(name);
  const { request } = await peer.receive();
  peer.send({ granted: { id: request.id, token } });
  return held;
}
