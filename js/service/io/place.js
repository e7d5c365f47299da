// The socket of a user's own service, and how to start that service. The command has the same rules
// in crates/navlocks-cli/src/place.rs.

import { execFile } from 'node:child_process';
import { lstatSync } from 'node:fs';
import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Backoff } from '../backoff.js';
import { findFile } from '../../native/platforms.js';

/** The variable that names another folder. */
const FOLDER_VARIABLE = 'NAVLOCKS_DIR';

/** The variable that names the command. */
const COMMAND_VARIABLE = 'NAVLOCKS_BIN';

/**
 * The longest path of the folder. That of a Unix socket has 107 bytes without its terminator, and
 * the longest one is that of the presence of a client.
 */
const FOLDER_BYTES_MAX = 107 - '/presence/4294967295'.length;

/** Limit for the start of a service. */
const START_MS_MAX = 30_000;

/** Longest pause between two attempts to start a service that ends at once. */
const START_PAUSE_MS_MAX = 2000;

/** A service that ran for this long is restarted without a pause. */
const LIFE_MS_MIN = 10_000;

/** Jitter against a thundering herd: all clients notice the end of a service at the same moment. */
const START_JITTER_MS_MAX = 50;

/** Returns the folder of this user's service, the same for all environments of the user. */
function folderOfUser() {
  const named = process.env[FOLDER_VARIABLE];
  return named ? resolve(named) : join('/tmp', `navlocks-${process.geteuid()}`);
}

/**
 * Returns the path of this user's service.
 *
 * @throws a failure if another user may have created the socket, or its path is too long
 */
export function socketOfUser() {
  if (process.geteuid === undefined) throw unreachable('only Unix has a service for each user: name the one to use, as ws://host:port');
  const folder = folderOfUser();
  if (Buffer.byteLength(folder) > FOLDER_BYTES_MAX) {
    throw unreachable(`the path ${folder} is too long for the sockets in it: set ${FOLDER_VARIABLE} to one of at most ${FOLDER_BYTES_MAX} bytes`);
  }
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (found !== undefined) check(folder, found);
  return join(folder, 'socket');
}

/** Throws if the service of another user could listen in this folder. */
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

/** Starts and restarts the user's service, with a back-off if it ends at once. */
export class Starter {
  #backoff = new Backoff(START_PAUSE_MS_MAX);
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
    if (now - this.#startedAt >= LIFE_MS_MIN) this.#backoff.restart();
    await sleep(Math.random() * START_JITTER_MS_MAX, undefined, { ref: false });
    try {
      await startOwn(path, command);
    } finally {
      this.#startedAt = performance.now();
      this.#notBefore = this.#startedAt + this.#backoff.nextPause();
    }
  }
}

/**
 * Starts the user's service unless a process listens. `navlocks run` starts it once for all
 * concurrent callers; the environment is passed without the token.
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
