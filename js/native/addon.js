// The native addon. All copies of the package in a process load one file: each file has its own
// lock space.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:process';
import { fileURLToPath } from 'node:url';
import { explainMissing, findFile } from './platforms.js';

const NAME = 'navlocks.node';

const require = createRequire(import.meta.url);

/** Returns the path of the addon: in a checkout, or in this platform's package. */
export function findAddon() {
  const built = fileURLToPath(new URL(`./${NAME}`, import.meta.url));
  return existsSync(built) ? built : findFile(NAME);
}

/** Loads the addon: { addon }, or { problem } with a sentence for the user. */
export function loadAddon(path = findAddon()) {
  if (path === undefined) {
    return { problem: `the native addon of navlocks is missing: ${explainMissing()}; connect() works without it` };
  }
  try {
    return { addon: require(path) };
  } catch ({ message }) {
    const sentence = message.split('\n', 1)[0];
    const problem = `the native addon of navlocks cannot be loaded on ${platform}-${arch}: ${sentence}`;
    return { problem: `${problem}: install navlocks again, or use connect(), which works without it` };
  }
}
