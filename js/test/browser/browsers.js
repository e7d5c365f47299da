// The real browsers of the tests, headless.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import * as playwright from 'playwright-core';
import { scratch } from '../support/service.js';
import { soaks } from '../support/soak.js';
import { INSECURE_HOST } from './site.js';

/** Returns the program of a browser, and the reason why it is missing; false if it is there. */
function programOf(variable, path, debian) {
  const executablePath = process.env[variable] ?? path;
  const missing = existsSync(executablePath) ? false : `there is no ${executablePath}: install Debian's package ${debian}, or set ${variable}`;
  return { executablePath, missing };
}

// Containers often cannot run the sandbox; the tests' own pages do not need it.
const NO_SANDBOX = '--no-sandbox';

export const chromium = {
  name: 'Chromium',
  ...programOf('NAVLOCKS_CHROMIUM', '/usr/bin/chromium', 'chromium'),

  launch() {
    return playwright.chromium.launch({
      executablePath: this.executablePath,
      args: [NO_SANDBOX, '--js-flags=--expose-gc', `--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1`],
      // The tests need the back/forward cache, which playwright disables by default.
      ignoreDefaultArgs: ['--disable-back-forward-cache'],
    });
  },

  /** Crashes the renderer of a page. */
  async crash(page) {
    const gone = page.waitForEvent('crash');
    const session = await page.context().newCDPSession(page);
    session.send('Page.crash').catch(() => {});
    await gone;
  },
};

export const firefox = {
  name: 'Firefox',
  ...programOf('NAVLOCKS_FIREFOX', '/usr/bin/firefox-esr', 'firefox-esr'),

  launch() {
    return playwright.firefox.launch({
      // By WebDriver BiDi, because this is no browser of playwright's own.
      channel: 'moz-firefox',
      executablePath: this.executablePath,
      firefoxUserPrefs: { 'network.dns.localDomains': INSECURE_HOST },
    });
  },
};

export const kinds = [chromium, firefox];

/** The browsers of tests that `./test` runs in one browser, and `./test soak` in both. */
export const soakedKinds = soaks ? kinds : [chromium];

/** Returns why Firefox cannot run a test; false for other browsers. */
export const unlessFirefox = (kind, reason) => kind === firefox && reason;

/**
 * Opens a page in a Chromium without a debugger, because a debugged one does not prerender. Returns
 * a function that ends the browser.
 */
export function openUnwatched(address) {
  const given = ['--headless', NO_SANDBOX, '--no-first-run', `--user-data-dir=${scratch()}`, address];
  const child = spawn(chromium.executablePath, given, { stdio: 'ignore' });
  const ended = once(child, 'exit');
  return async () => {
    child.kill();
    await ended;
  };
}

/** One browser of a kind for all tests, and another one after a crash. */
export class Browsers {
  #kind;
  #browser;

  constructor(kind = chromium) {
    this.#kind = kind;
  }

  async open() {
    if (!(await this.#browser)?.isConnected()) this.#browser = this.#kind.launch();
    return this.#browser;
  }

  async close() {
    await (await this.#browser)?.close();
  }
}
