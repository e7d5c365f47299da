// A real Chromium, headless.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { scratch } from '../service.js';
import { INSECURE_HOST } from './site.js';

const executablePath = process.env.NAVLOCKS_CHROMIUM ?? '/usr/bin/chromium';

/** The reason why there is no browser; false if there is one. */
export const missing = existsSync(executablePath)
  ? false
  : `there is no ${executablePath}: install Debian's package chromium, or set NAVLOCKS_CHROMIUM`;

// Containers often cannot run the sandbox; the tests' own pages do not need it.
const NO_SANDBOX = '--no-sandbox';

function launch() {
  return chromium.launch({
    executablePath,
    args: [NO_SANDBOX, '--js-flags=--expose-gc', `--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1`],
    // The tests need the back/forward cache, which playwright disables by default.
    ignoreDefaultArgs: ['--disable-back-forward-cache'],
  });
}

/**
 * Opens a page in a browser without a debugger, because a debugged one does not prerender. Returns
 * a function that ends the browser.
 */
export function openUnwatched(address) {
  const given = ['--headless', NO_SANDBOX, '--no-first-run', `--user-data-dir=${scratch()}`, address];
  const child = spawn(executablePath, given, { stdio: 'ignore' });
  const ended = once(child, 'exit');
  return async () => {
    child.kill();
    await ended;
  };
}

/** One browser for all tests, and another one after a crash. */
export class Browsers {
  #browser;

  async open() {
    if (!(await this.#browser)?.isConnected()) this.#browser = launch();
    return this.#browser;
  }

  async close() {
    await (await this.#browser)?.close();
  }
}
