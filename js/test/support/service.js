// A real service for tests: `navlocks serve`, on a Unix socket and on TCP.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const target = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL('../../../target', import.meta.url));

/** The command, as `cargo build -p navlocks-cli` leaves it. */
export const command = process.env.NAVLOCKS_BIN ?? join(target, 'debug', 'navlocks');

if (!existsSync(command)) throw new Error(`there is no ${command}: run 'cargo build -p navlocks-cli', or set NAVLOCKS_BIN`);

/** Functions to call when this process ends. */
const ends = [];
process.on('exit', () => {
  for (const end of ends) end();
});

/** Creates a folder that is removed with the process. */
export function scratch() {
  // A socket's path must be short.
  const folder = mkdtempSync(join(tmpdir(), 'navlocks-'));
  ends.unshift(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

export class Service {
  #folder = scratch();
  #given;
  #environment;
  #child;
  #port = 0;

  /** @param given further arguments of `navlocks serve` */
  constructor(given = [], environment = {}) {
    this.#given = given;
    this.#environment = environment;
    ends.unshift(() => this.kill());
  }

  static async start(given, environment) {
    const service = new Service(given, environment);
    await service.start();
    return service;
  }

  get folder() {
    return this.#folder;
  }

  get unix() {
    return `unix:${join(this.#folder, 'socket')}`;
  }

  get tcp() {
    return `ws://127.0.0.1:${this.#port}`;
  }

  get tls() {
    return `wss://127.0.0.1:${this.#port}`;
  }

  /** Starts it, or restarts it at the same addresses. */
  async start() {
    const places = ['--socket', join(this.#folder, 'socket'), '--state-dir', this.#folder, '--fresh', '--listen', `127.0.0.1:${this.#port}`];
    const env = { ...process.env, NAVLOCKS_LOG: 'warn', ...this.#environment };
    // The service ends soon if this process is killed.
    const child = spawn(command, ['serve', ...places, '--idle-exit', '120s', ...this.#given], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child = child;
    const failed = once(child, 'exit').then(([code]) => {
      throw new Error(`the service ended with ${code}`);
    });
    failed.catch(() => {});
    const [line] = await Promise.race([once(createInterface(child.stdout), 'line'), failed]);
    this.#port = Number(/wss?:\/\/127\.0\.0\.1:(\d+)/.exec(line)[1]);
    child.unref();
    child.stdout.unref();
    return this;
  }

  get pid() {
    return this.#child.pid;
  }

  signal(name) {
    this.#child.kill(name);
  }

  /** Kills it. Resolves when it has ended. */
  kill(signal = 'SIGKILL') {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
    child.ref();
    child.kill(signal);
    return once(child, 'exit');
  }
}

/** Returns the address of a service that this process shares with its children. */
export async function commonUrl(kind) {
  const variable = `NAVLOCKS_TEST_${kind.toUpperCase()}`;
  if (process.env[variable] === undefined) {
    const service = await Service.start(['--lease-max', '10m']);
    process.env.NAVLOCKS_TEST_UNIX = service.unix;
    process.env.NAVLOCKS_TEST_TCP = service.tcp;
  }
  return process.env[variable];
}
