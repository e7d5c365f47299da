// Finds the native addon. All copies of the package in a process use the addon of one of them: each
// addon file that is loaded has a lock space of its own, and two copies would grant one lock twice.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:process';
import { fileURLToPath } from 'node:url';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import { explainMissing, findFile } from './platforms.js';

/** What copies of the package agree on: the functions of the addon, and the meaning of its numbers. */
const INTERFACE = 2;

/** Threads inherit environment data from the thread that starts them. */
const KEY = 'navlocks.addon';

const NAME = 'navlocks.node';

const require = createRequire(import.meta.url);

/** The addon of a checkout, or that of this platform's package. */
function findAddon() {
  const built = fileURLToPath(new URL(`./native/${NAME}`, import.meta.url));
  return existsSync(built) ? built : findFile(NAME);
}

/** Loads the addon: { addon }, or { problem } with a sentence for the user. */
export function loadAddon() {
  const first = getEnvironmentData(KEY);
  const path = first?.path ?? findAddon();
  if (first !== undefined && first.interface !== INTERFACE) {
    return { problem: `another version of navlocks is loaded in this process, from ${path}: use one version, or connect() to a service` };
  }
  if (path === undefined) return { problem: `the native part of navlocks is missing: ${explainMissing()}; connect() needs none` };
  try {
    const addon = require(path);
    setEnvironmentData(KEY, { path, interface: INTERFACE });
    return { addon };
  } catch ({ message }) {
    const sentence = message.split('\n', 1)[0];
    return { problem: `the native part of navlocks cannot be loaded on ${platform}-${arch}: ${sentence}: install navlocks again, or use connect(), which needs none` };
  }
}
