// A service that a test plays.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { connect } from 'navlocks';
import { WebSocketServer } from 'ws';
import { scratch } from './service.js';

const LIMITS = { 'message-bytes-max': 1000 };

/** One connection, as the service has it. */
export class Peer {
  #socket;
  #heard = [];
  #waiting = [];

  constructor(socket) {
    this.#socket = socket;
    this.closed = once(socket, 'close');
    socket.on('message', (text) => {
      const message = JSON.parse(text);
      if (this.#waiting.length > 0) this.#waiting.shift()(message);
      else this.#heard.push(message);
    });
  }

  hear() {
    return this.#heard.length > 0 ? Promise.resolve(this.#heard.shift()) : new Promise((resolve) => this.#waiting.push(resolve));
  }

  say(message) {
    this.#socket.send(JSON.stringify(message));
  }

  welcome(more) {
    this.say({ welcome: { version: 1, service: 'a test', limits: LIMITS, ...more } });
  }

  drop() {
    this.#socket.terminate();
  }
}

/** A service that a test plays, on a Unix socket or TCP. */
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

  /** A client, and its first connection. */
  async connect(url, welcome, options) {
    const connected = connect(url, options);
    const peer = await this.accept();
    await peer.hear();
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

/** A lock, granted by the peer. */
export async function hold(locks, peer, name, token) {
  const held = locks.hold(name);
  const { request } = await peer.hear();
  peer.say({ granted: { id: request.id, token } });
  return held;
}
