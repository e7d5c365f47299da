// Finds the native addon. All copies of the package in a process use the addon of one of them: each
// addon file that is loaded has a lock space of its own, and two copies would grant one lock twice.

import { createRequire } from 'node:module';
import { arch, platform } from 'node:process';
import { fileURLToPath } from 'node:url';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

/** What copies of the package agree on: the functions of the addon, and the meaning of its numbers. */
const INTERFACE = 2;

/** Threads inherit environment data from the thread that starts them. */
const KEY = 'navlocks.addon';

/** Where a file of the addon is part of the package. */
const PLATFORMS = 'linux-x64 with glibc';

const require = createRequire(import.meta.url);

/** Loads the addon: { addon }, or { problem } with a sentence for the user. */
export function loadAddon() {
  const first = getEnvironmentData(KEY);
  const path = first?.path ?? fileURLToPath(new URL('./native/navlocks.node', import.meta.url));
  if (first !== undefined && first.interface !== INTERFACE) {
    return { problem: `another version of navlocks is loaded in this process, from ${path}: use one version, or connect() to a service` };
  }
  try {
    const addon = require(path);
    setEnvironmentData(KEY, { path, interface: INTERFACE });
    return { addon };
  } catch ({ message }) {
    return {
      problem: `the native part of navlocks cannot be loaded on ${platform}-${arch} (there is one for ${PLATFORMS}): build it from the sources, or use connect(), which needs none: ${message.split('\n', 1)[0]}`,
    };
  }
}
