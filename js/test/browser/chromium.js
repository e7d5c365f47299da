// A real Chromium, headless.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { scratch } from '../service.js';
import { INSECURE_HOST } from './site.js';

const executablePath = process.env.NAVLOCKS_CHROMIUM ?? '/usr/bin/chromium';

/** Why there is no browser to test in; false if there is. */
export const missing = existsSync(executablePath)
  ? false
  : `there is no ${executablePath}: install Debian's package chromium, or say in NAVLOCKS_CHROMIUM where one is`;

// The sandbox needs what containers often lack; the pages are our own.
const NO_SANDBOX = '--no-sandbox';

function launch() {
  return chromium.launch({
    executablePath,
    args: [NO_SANDBOX, '--js-flags=--expose-gc', `--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1`],
    // What pages have to expect from browsers is tested, so it is not switched off.
    ignoreDefaultArgs: ['--disable-back-forward-cache'],
  });
}

/** Opens a page in a browser of its own that nobody watches: a watched one does not prerender. Returns how to end it. */
export function openUnwatched(address) {
  const given = ['--headless', NO_SANDBOX, '--no-first-run', `--user-data-dir=${scratch()}`, address];
  const child = spawn(executablePath, given, { stdio: 'ignore' });
  const ended = once(child, 'exit');
  return async () => {
    child.kill();
    await ended;
  };
}

/** One browser for all, and another one when it has crashed. */
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
