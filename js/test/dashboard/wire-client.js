// A client at the level of messages, for scenes with many clients in one process.

import { once } from 'node:events';
import WebSocket from 'ws';

export class WireClient {
  onMessage = () => {};
  #socket;
  #next = 1;
  #waits = new Map();

  /** @param url `unix:PATH` or `ws://HOST:PORT` */
  static async connect(url, { token, origin, partition, lease, carry } = {}) {
    const client = new WireClient();
    const address = url.startsWith('unix:') ? `ws+unix:${url.slice(5)}:/` : url;
    const headers = { ...(token && { authorization: `Bearer ${token}` }), ...(origin && { origin }) };
    client.#socket = new WebSocket(address, ['navlocks.2'], { headers, perMessageDeflate: false });
    client.#socket.on('message', (data) => client.#handle(JSON.parse(data)));
    client.#socket.on('error', () => {});
    await once(client.#socket, 'open');
    const welcome = client.#receive('welcome');
    client.send({ hello: { partition, 'lease-ms': lease, carry } });
    client.session = (await welcome).session;
    return client;
  }

  send(message) {
    this.#socket.send(JSON.stringify(message));
  }

  /** Requests names. Returns the number of the request, and a promise of its grant. */
  request(names, { mode, tag, wait, within, maxHold } = {}) {
    const id = this.#next;
    this.#next += 1;
    const granted = this.#receive(`granted ${id}`);
    this.send({ request: { id, names: [names].flat(), mode, wait, tag, within, 'max-hold-ms': maxHold } });
    return { id, granted };
  }

  /** Requests names and waits for the grant. */
  async hold(names, options) {
    const { id, granted } = this.request(names, options);
    await granted;
    return id;
  }

  release(id) {
    this.send({ end: id });
  }

  /** Resolves when request `id` is lost. */
  lost(id) {
    return this.#receive(`lost ${id}`);
  }

  close() {
    this.#socket.close();
  }

  /** Breaks the connection without a message. */
  cut() {
    this.#socket.terminate();
  }

  #receive(key) {
    return new Promise((resolve) => this.#waits.set(key, resolve));
  }

  #handle(message) {
    const [word, body] = typeof message === 'string' ? [message] : Object.entries(message)[0];
    const happened = body?.why?.lost === undefined ? word : 'lost';
    const key = body?.id === undefined ? happened : `${happened} ${body.id}`;
    this.#waits.get(key)?.(body?.why?.lost ?? body);
    this.#waits.delete(key);
    this.onMessage(message);
  }
}
