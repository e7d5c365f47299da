// The service of a user: where it lives, and how it is started. The command has the same in crates/navlocks-cli/src/place.rs.

import { execFile } from 'node:child_process';
import { lstatSync } from 'node:fs';
import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Pauses } from './pauses.js';
import { findFile } from './platforms.js';

/** The variable that names another folder. */
const FOLDER_VARIABLE = 'NAVLOCKS_DIR';

/** The variable that names the command. */
const COMMAND_VARIABLE = 'NAVLOCKS_BIN';

/** For a service to start. */
const START_MS_MAX = 30_000;

/** Between two attempts to start a service that ends at once. */
const START_PAUSE_MS_MAX = 2000;

/** A service that lived for so long is started again at once. */
const LIFE_MS_MIN = 10_000;

/** Spreads the clients that want to start a service: all find out at the same moment that it ended. */
const START_JITTER_MS_MAX = 50;

/** The folder of this user's service, the same for all processes of the user whatever their environment. */
function folderOfUser() {
  const named = process.env[FOLDER_VARIABLE];
  return named ? resolve(named) : join('/tmp', `navlocks-${process.geteuid()}`);
}

/**
 * The socket of this user's service.
 *
 * @throws a failure, if others could have put it there
 */
export function socketOfUser() {
  if (process.geteuid === undefined) throw unreachable('only Unix has a service for each user: name the one to use, as ws://host:port');
  const folder = folderOfUser();
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (found !== undefined) check(folder, found);
  return join(folder, 'socket');
}

/** In a folder that others can write to, somebody else's service might listen. */
function check(folder, found) {
  const user = process.geteuid();
  if (!found.isDirectory()) throw unsafe(`${folder} is not a folder: remove it, or set ${FOLDER_VARIABLE} to another one`);
  if (found.uid !== user) {
    throw unsafe(`${folder} belongs to user ${found.uid}, not to user ${user}: set ${FOLDER_VARIABLE} to a folder of your own`);
  }
  if ((found.mode & 0o077) !== 0) {
    throw unsafe(`others can enter ${folder} (its mode is ${(found.mode & 0o777).toString(8)}): close it with chmod 700`);
  }
}

/** Starts the user's service, and starts it again when it ended: one that cannot live does not keep the machine busy. */
export class Starter {
  #pauses = new Pauses(START_PAUSE_MS_MAX);
  #starting;
  #startedAt = -Infinity;
  #notBefore = -Infinity;

  /** Resolves when a service listens, or when it is too early for another attempt. */
  start(path, command) {
    this.#starting ??= this.#start(path, command).finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  async #start(path, command) {
    if (await listens(path)) return;
    const now = performance.now();
    if (now < this.#notBefore) return;
    if (now - this.#startedAt >= LIFE_MS_MIN) this.#pauses.restart();
    await sleep(Math.random() * START_JITTER_MS_MAX, undefined, { ref: false });
    try {
      await startOwn(path, command);
    } finally {
      this.#startedAt = performance.now();
      this.#notBefore = this.#startedAt + this.#pauses.next();
    }
  }
}

/**
 * Starts the user's service if nobody listens there. The command does it when it is given something to run: once, however many
 * want it at the same time, and with an environment that keeps nobody's secrets.
 */
async function startOwn(path, command = process.env[COMMAND_VARIABLE] || findFile('bin/navlocks') || 'navlocks') {
  if (await listens(path)) return;
  const { NAVLOCKS_URL, NAVLOCKS_TOKEN, ...env } = process.env;
  const given = ['run', '--partition', 'navlocks-start', 'start', '--', command, '--version'];
  try {
    await promisify(execFile)(command, given, { env, timeout: START_MS_MAX });
  } catch (error) {
    const why = error.code === 'ENOENT' ? `there is no command '${command}': install it, or name it with ${COMMAND_VARIABLE}` : error.stderr?.trim() || error.message;
    throw unreachable(`its service did not start: ${why}`);
  }
}

function listens(path) {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function unreachable(message) {
  return { code: 'unreachable', message };
}

function unsafe(message) {
  return { code: 'unsafe', message };
}
