// Finds the native addon. All copies of the package in a process load one file: each file has its
// own lock space.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:process';
import { fileURLToPath } from 'node:url';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import { explainMissing, findFile } from './platforms.js';

/** The version of the addon's functions and numbers. Copies of the package must have the same. */
const INTERFACE = 3;

/** Threads inherit environment data from the thread that starts them. */
const KEY = 'navlocks.addon';

const NAME = 'navlocks.node';

const require = createRequire(import.meta.url);

/** Returns the path of the addon: in a checkout, or in this platform's package. */
function findAddon() {
  const built = fileURLToPath(new URL(`./${NAME}`, import.meta.url));
  return existsSync(built) ? built : findFile(NAME);
}

/** Loads the addon: { addon }, or { problem } with a sentence for the user. */
export function loadAddon() {
  const first = getEnvironmentData(KEY);
  const path = first?.path ?? findAddon();
  if (first !== undefined && first.interface !== INTERFACE) {
    const problem = `another version of navlocks is loaded in this process, from ${path}`;
    return { problem: `${problem}: use one version, or connect() to a service` };
  }
  if (path === undefined) {
    return { problem: `the native addon of navlocks is missing: ${explainMissing()}; connect() works without it` };
  }
  try {
    const addon = require(path);
    setEnvironmentData(KEY, { path, interface: INTERFACE });
    return { addon };
  } catch ({ message }) {
    const sentence = message.split('\n', 1)[0];
    const problem = `the native addon of navlocks cannot be loaded on ${platform}-${arch}: ${sentence}`;
    return { problem: `${problem}: install navlocks again, or use connect(), which works without it` };
  }
}
