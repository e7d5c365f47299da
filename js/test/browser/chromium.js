// A real Chromium, headless.

import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { INSECURE_HOST } from './site.js';

const executablePath = process.env.NAVLOCKS_CHROMIUM ?? '/usr/bin/chromium';

/** Why there is no browser to test in; false if there is. */
export const missing = existsSync(executablePath)
  ? false
  : `there is no ${executablePath}: install Debian's package chromium, or say in NAVLOCKS_CHROMIUM where one is`;

function launch() {
  return chromium.launch({
    executablePath,
    // The sandbox needs what containers often lack; the pages are our own.
    args: ['--no-sandbox', `--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1`],
    // What pages have to expect from browsers is tested, so it is not switched off.
    ignoreDefaultArgs: ['--disable-back-forward-cache'],
  });
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
