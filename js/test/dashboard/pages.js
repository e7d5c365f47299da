// Pages of the dashboard in a browser, for tests.

import assert from 'node:assert/strict';
import { Browsers } from '../browser/browsers.js';

export class Pages {
  #browsers;

  constructor(kind) {
    this.#browsers = new Browsers(kind);
  }

  /** Opens a page in a context of its own. close() fails the test if the page had errors. */
  async open(address, options) {
    const context = await (await this.#browsers.open()).newContext(options);
    const page = await context.newPage();
    page.problems = [];
    page.on('pageerror', (error) => page.problems.push(error.message));
    page.on('console', (message) => message.type() === 'error' && page.problems.push(message.text()));
    if (address !== undefined) await page.goto(address);
    return page;
  }

  async close(page) {
    const { problems } = page;
    await page.context().close();
    assert.deepEqual(problems, []);
  }

  async end() {
    await this.#browsers.close();
  }
}

/** Returns the text of the page when it has all of these. */
export async function shows(page, ...texts) {
  for (const text of texts) {
    await page.waitForFunction((wanted) => document.querySelector('main')?.innerText.includes(wanted), text, { timeout: 20_000 });
  }
  return page.evaluate(() => document.querySelector('main').innerText);
}
