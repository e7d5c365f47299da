// Takes the screenshots of docs/dashboard.md: `node test/dashboard/screenshots.js [SECONDS]
// [FOLDER]`.
//
// With FOLDER it takes every view in light and dark, wide and narrow.

import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Browsers } from '../browser/browsers.js';
import { Service } from '../support/service.js';
import { Dashboard } from './page.js';
import { startScene } from './scene.js';

const seconds = Number(process.argv[2] ?? 75);
const folder = process.argv[3] ?? fileURLToPath(new URL('../../../docs/dashboard', import.meta.url));

const VIEWS = {
  names: '#/names',
  name: '#/name?name=catalogue/index',
  blocking: '#/blocking',
  deadlocks: '#/deadlocks',
  time: '#/time?ago=20000',
  clients: '#/clients',
  events: '#/events',
};
const SIZES = { wide: { width: 1280, height: 860 }, narrow: { width: 390, height: 844 } };

/** Screenshots of the page in addition to the wide and light ones. */
const OTHERS = ['names-wide-dark', 'blocking-narrow-light', 'deadlocks-narrow-dark'];

const isWanted = (picture) => process.argv[3] !== undefined || picture.endsWith('-wide-light') || OTHERS.includes(picture);

mkdirSync(folder, { recursive: true });
const service = await Service.start(['--lease-max', '10m', '--deadlocks', 'report']);
const dashboard = await Dashboard.start(service.unix, ['--actions']);
const browsers = new Browsers();
const browser = await browsers.open();
const context = await browser.newContext({ deviceScaleFactor: 1 });
const page = await context.newPage();
await page.goto(dashboard.url);
await page.waitForSelector('.live');
const scene = await startScene(service);
// The view of time needs a history.
await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
for (const [size, viewport] of Object.entries(SIZES)) {
  await page.setViewportSize(viewport);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const [view, address] of Object.entries(VIEWS)) {
      const picture = `${view}-${size}-${colorScheme}`;
      if (!isWanted(picture)) continue;
      await page.evaluate((hash) => {
        location.hash = hash;
      }, address);
      await page.waitForFunction(() => document.querySelector('main h1, main .facts') !== null);
      await new Promise((resolve) => setTimeout(resolve, 1500));
      await page.screenshot({ path: `${folder}/${picture}.png`, fullPage: view === 'time' });
    }
  }
}
await page.setViewportSize(SIZES.wide);
await page.emulateMedia({ colorScheme: 'light' });
await page.evaluate(() => {
  location.hash = '#/deadlocks';
});
await page.getByRole('button', { name: 'Break it…' }).first().click();
await page.waitForSelector('dialog[open]');
await page.screenshot({ path: `${folder}/act-wide-light.png` });
await scene.end();
await browsers.close();
await dashboard.close();
await service.kill('SIGTERM');
process.exit(0);
