// A network between a client and a service that can be cut and can fall silent.

import { once } from 'node:events';
import { connect, createServer } from 'node:net';

export class Proxy {
  #pairs = new Set();
  #silent = false;
  /** Connections whose bytes are swallowed. */
  #swallowed = new WeakSet();
  #server;

  /** @param url of the service */
  static async start(url) {
    const { hostname, port } = new URL(url);
    const proxy = new Proxy();
    proxy.#server = createServer((inner) => proxy.#join(inner, connect(Number(port), hostname)));
    proxy.#server.unref();
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url() {
    return `ws://127.0.0.1:${this.#server.address().port}`;
  }

  #join(inner, outer) {
    const pair = [inner, outer];
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [outer, inner]]) {
      from.unref();
      from.on('data', (bytes) => this.#silent || this.#swallowed.has(pair) || to.write(bytes));
      from.on('error', () => {});
      from.on('close', () => {
        if (!this.#silent && !this.#swallowed.has(pair)) to.destroy();
        this.#pairs.delete(pair);
      });
    }
  }

  /** All connections break; new ones can be made. */
  cut() {
    for (const pair of this.#pairs) for (const socket of pair) socket.resetAndDestroy();
  }

  /** From now on nothing gets through, and nobody is told. */
  silence() {
    this.#silent = true;
  }

  /** From now on nothing gets through the connections of this moment, and nobody is told. New ones can be made. */
  swallow() {
    for (const pair of this.#pairs) this.#swallowed.add(pair);
  }

  /** Connections can be made again. Those of before stay dead. */
  speak() {
    this.cut();
    this.#silent = false;
  }
}
