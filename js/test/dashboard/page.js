// The dashboard and its clients, for tests and screenshots.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { command } from '../support/service.js';

/** `navlocks dashboard` for the service at a Unix socket. */
export class Dashboard {
  #child;

  static async start(unix, given = []) {
    const dashboard = new Dashboard();
    const child = spawn(command, ['dashboard', '--no-open', '--url', unix, ...given], { stdio: ['ignore', 'pipe', 'inherit'] });
    dashboard.#child = child;
    process.on('exit', () => child.kill());
    child.unref();
    const [line] = await once(createInterface(child.stdout), 'line');
    dashboard.url = /http:\S+/.exec(line)[0];
    child.stdout.unref();
    return dashboard;
  }

  get origin() {
    return new URL(this.url).origin;
  }

  async close() {
    this.#child.ref();
    this.#child.kill('SIGTERM');
    await once(this.#child, 'exit');
  }
}

/** A client in a process of its own, see holder.js. */
export class Holder {
  #child;
  #lines;
  #received = [];
  #wake = () => {};

  static async start(url) {
    const holder = new Holder();
    const program = fileURLToPath(new URL('holder.js', import.meta.url));
    holder.#child = spawn(process.execPath, [program, url], { stdio: ['pipe', 'pipe', 'inherit'] });
    holder.#lines = createInterface(holder.#child.stdout);
    holder.#lines.on('line', (line) => {
      holder.#received.push(JSON.parse(line));
      holder.#wake();
    });
    await holder.receive((message) => message === 'ready');
    return holder;
  }

  get pid() {
    return this.#child.pid;
  }

  send(message) {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** Requests names, with this number of the request. */
  request(id, names, options = {}) {
    this.send({ request: { id, names: [names].flat(), ...options } });
  }

  async hold(id, names, options) {
    this.request(id, names, options);
    await this.receive((message) => message.granted?.id === id);
  }

  /** Resolves with the first matching message, past or future. */
  async receive(matches) {
    for (;;) {
      const found = this.#received.find(matches);
      if (found !== undefined) return found;
      await new Promise((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async close() {
    if (this.#child.exitCode !== null) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }
}
