// A proxy between a client and a service, which can break or silence connections.

import { once } from 'node:events';
import { connect, createServer } from 'node:net';

export class Proxy {
  #pairs = new Set();
  #silent = false;
  /** The effects of connections, while all traffic is held back. */
  #held;
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
      from.on('data', (bytes) => this.#do(() => this.#silent || this.#swallowed.has(pair) || to.write(bytes)));
      from.on('error', () => {});
      from.on('close', () => {
        this.#do(() => {
          if (!this.#silent && !this.#swallowed.has(pair)) to.destroySoon();
        });
        this.#pairs.delete(pair);
      });
    }
  }

  #do(work) {
    if (this.#held === undefined) work();
    else this.#held.push(work);
  }

  /** Holds all bytes and ends of connections back, in both directions. */
  hold() {
    this.#held = [];
  }

  /** Passes on what was held back, in order, and all that follows. */
  pass() {
    const held = this.#held;
    this.#held = undefined;
    for (const work of held) work();
  }

  /** Breaks all connections. New ones work. */
  cut() {
    for (const pair of this.#pairs) for (const socket of pair) socket.resetAndDestroy();
  }

  /** Drops all bytes of all connections from now on, without closing them. */
  silence() {
    this.#silent = true;
  }

  /** Drops all bytes of the current connections, without closing them. New ones work. */
  swallow() {
    for (const pair of this.#pairs) this.#swallowed.add(pair);
  }

  /** Ends the silence. New connections work, the old ones are closed. */
  speak() {
    this.cut();
    this.#silent = false;
  }
}
