// Measures requests in sequence in a page of Chromium and prints nanoseconds a request:
// chromium.js SIDE SIZE. SIDE is `native`, or `navlocks` through a service of NAVLOCKS_BIN.

import process from 'node:process';
import { Browsers } from '../test/browser/browsers.js';
import { startSite } from '../test/browser/site.js';
import { Service } from '../test/support/service.js';

const [side, size] = process.argv.slice(2);

async function measure(page, url) {
  return page.evaluate(async ([url, count]) => {
    if (url !== undefined) (await import('/browser.js')).install(globalThis, { url });
    const { cases } = await import('/bench/cases.js');
    return cases.sequential.run(navigator.locks, count);
  }, [url, Number(size)]);
}

const site = await startSite();
const service = side === 'navlocks' ? await Service.start(['--allow-origin', site.origin]) : undefined;
const browsers = new Browsers();
const page = await (await browsers.open()).newPage();
await page.goto(`${site.origin}/test/browser/plain.html`);
console.log(await measure(page, service?.tcp));
await browsers.close();
await service?.kill();
await site.close();
