// A client that speaks the wire, for scenes with many clients in one process.

import { once } from 'node:events';
import WebSocket from 'ws';

export class Talker {
  heard = () => {};
  #socket;
  #next = 1;
  #waits = new Map();

  /** @param url `unix:PATH` or `ws://HOST:PORT` */
  static async connect(url, { token, origin, partition, lease } = {}) {
    const talker = new Talker();
    const address = url.startsWith('unix:') ? `ws+unix:${url.slice(5)}:/` : url;
    const headers = { ...(token && { authorization: `Bearer ${token}` }), ...(origin && { origin }) };
    talker.#socket = new WebSocket(address, ['navlocks.1'], { headers, perMessageDeflate: false });
    talker.#socket.on('message', (data) => talker.#receive(JSON.parse(data)));
    talker.#socket.on('error', () => {});
    await once(talker.#socket, 'open');
    const welcome = talker.#hears('welcome');
    talker.say({ hello: { version: 1, partition, 'lease-ms': lease } });
    talker.session = (await welcome).session;
    return talker;
  }

  say(message) {
    this.#socket.send(JSON.stringify(message));
  }

  /** Requests names. Returns the number of the request, and a promise of its grant. */
  request(names, { mode, tag, wait } = {}) {
    const id = this.#next;
    this.#next += 1;
    const granted = this.#hears(`granted ${id}`);
    this.say({ request: { id, names: [names].flat(), mode, wait, tag } });
    return { id, granted };
  }

  /** Requests names and waits for the grant. */
  async hold(names, options) {
    const { id, granted } = this.request(names, options);
    await granted;
    return id;
  }

  release(id) {
    this.say({ release: id });
  }

  /** Resolves when request `id` is lost. */
  lost(id) {
    return this.#hears(`lost ${id}`);
  }

  close() {
    this.#socket.close();
  }

  /** Breaks the connection without a word. */
  cut() {
    this.#socket.terminate();
  }

  #hears(what) {
    return new Promise((resolve) => this.#waits.set(what, resolve));
  }

  #receive(message) {
    const [word, body] = typeof message === 'string' ? [message] : Object.entries(message)[0];
    const key = body?.id === undefined ? word : `${word} ${body.id}`;
    this.#waits.get(key)?.(body);
    this.#waits.delete(key);
    this.heard(message);
  }
}
