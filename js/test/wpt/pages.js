// The public tests in a real browser, on navlocks or on its own locks.

import { Browsers } from '../browser/browsers.js';
import { Service } from '../support/service.js';
import { bundle } from './bundle.js';
import { pages } from './checkout.js';
import { subtestsOf } from './results.js';
import { startPublicSite } from './site.js';

/** Longer than the time limit of any test. */
const LIMIT_MS = 240_000;

/** So long that only the end of a client releases its locks. */
const LEASE_MS = 600_000;

/** Loads navlocks in workers of a blob, whose scripts the site does not serve. */
const BLOBS = `{
  const { Worker, Blob, URL, location } = globalThis;
  globalThis.Worker = function (url, ...given) {
    if (!String(url).startsWith('blob:')) return new Worker(url, ...given);
    const script = 'importScripts(' + JSON.stringify(location.origin + '/navlocks.js') + ', ' + JSON.stringify(url) + ');';
    return new Worker(URL.createObjectURL(new Blob([script])), ...given);
  };
}`;

/**
 * Opens every page that `wanted` accepts.
 *
 * @yields { place, test, name, passed, message } for every subtest
 */
export async function* runInPages({ kind, native, wanted }) {
  const site = await startPublicSite();
  const browsers = new Browsers(kind);
  try {
    for (const given of pages().filter(({ path }) => wanted(path))) {
      const browser = await browsers.open();
      // Tests may count all locks, so each has a service of its own.
      const service = native ? undefined : await Service.start(['--lease-max', '10m', ...site.origins.flatMap((origin) => ['--allow-origin', origin])]);
      site.navlocks = native ? '' : bundle({ url: service.tcp, lease: LEASE_MS });
      const context = await browser.newContext();
      await context.addInitScript(site.navlocks);
      if (!native && given.path.includes('/crashtests/')) await context.addInitScript(BLOBS);
      const subtests = await (given.path.includes('/crashtests/') ? survive : report)(await context.newPage(), address(site, given.path));
      for (const subtest of subtests) yield { place: given.global, test: given.test, ...subtest };
      await context.close().catch(() => {});
      await service?.kill();
    }
  } finally {
    await browsers.close();
    await site.close();
  }
}

function address(site, path) {
  return `${path.includes('non-secure') ? site.insecure : site.origins[0]}${path}`;
}

/** Returns the results that the page reports. */
async function report(page, url) {
  try {
    await page.goto(url);
    const found = await page.waitForFunction(() => globalThis.publicResults, undefined, { timeout: LIMIT_MS, polling: 50 });
    return subtestsOf(await found.jsonValue());
  } catch (error) {
    return subtestsOf({ message: String(error), subtests: [] });
  }
}

/** Checks that the page does not crash before it removes its class `test-wait`. */
async function survive(page, url) {
  const name = 'the page survives';
  const crash = new Promise((resolve, reject) => page.once('crash', () => reject(new Error('the page crashed'))));
  crash.catch(() => {});
  try {
    await Promise.race([crash, page.goto(url)]);
    const done = page.waitForFunction(() => !document.documentElement.classList.contains('test-wait'), undefined, { timeout: LIMIT_MS, polling: 50 });
    await Promise.race([crash, done]);
    return [{ name, passed: true }];
  } catch (error) {
    return [{ name, passed: false, message: String(error) }];
  }
}
