// Origins that share one lock space (--share-origins): pages in real browsers, and programs over
// TCP and Unix sockets.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connect } from 'navlocks';
import { Browsers, soakedKinds } from '../browser/browsers.js';
import { startSite } from '../browser/site.js';
import { Service } from '../support/service.js';

for (const kind of soakedKinds) describe(`shared origins in ${kind.name}`, { skip: kind.missing }, () => {
  const browsers = new Browsers(kind);
  const services = [];
  let site;

  before(async () => {
    site = await startSite();
  });

  after(async () => {
    await browsers.close();
    await site.close();
    for (const service of services) await service.kill();
  });

  async function startService(...given) {
    const service = await Service.start(given);
    services.push(service);
    return service;
  }

  /** A page of an origin, connected to a service. */
  async function openPage(origin, url) {
    const page = await (await browsers.open()).newPage();
    await page.goto(`${origin}/test/browser/empty.html`);
    await page.evaluate(async (service) => {
      const { connect } = await import('/browser.js');
      globalThis.locks = await connect(service);
    }, url);
    return page;
  }

  const spaceOf = (page) => page.evaluate(() => ({ ...globalThis.locks.space }));
  const holds = (page, name) => page.evaluate(async (name) => (await globalThis.locks.hold(name, { ifAvailable: true })) !== null, name);

  test('pages of shared origins have one lock space, and programs join it by any of them', async () => {
    const service = await startService('--share-origins', `${site.origin},${site.other}`);
    const pages = [await openPage(site.origin, service.tcp), await openPage(site.other, service.tcp)];
    for (const page of pages) assert.deepEqual(await spaceOf(page), { origin: site.origin, partition: '' });
    assert.deepEqual([await holds(pages[0], 'a'), await holds(pages[1], 'a')], [true, false]);
    for (const [url, origin] of [[service.tcp, site.other], [service.unix, site.other], [service.unix, site.origin]]) {
      const locks = await connect(url, { origin });
      assert.deepEqual(locks.space, { origin: site.origin, partition: '' });
      assert.equal(await locks.hold('a', { ifAvailable: true }), null);
      await locks.close();
    }
    const apart = await connect(service.unix);
    assert.deepEqual(apart.space, { origin: undefined, partition: '' });
    (await apart.hold('a', { ifAvailable: true })).release();
    await apart.close();
    await assert.rejects(connect(service.unix, { origin: 'https://elsewhere.example' }), { name: 'SecurityError', cause: 'forbidden-origin' });
  });

  test('pages of an origin shared with programs have the lock space of programs', async () => {
    const service = await startService('--share-origins', `programs,${site.other}`, '--allow-origin', site.origin);
    const [shared, apart] = [await openPage(site.other, service.tcp), await openPage(site.origin, service.tcp)];
    const locks = await connect(service.unix);
    assert.deepEqual(await spaceOf(shared), { origin: undefined, partition: '' });
    assert.equal(await holds(shared, 'a'), true);
    assert.equal(await locks.hold('a', { ifAvailable: true }), null);
    assert.deepEqual(await spaceOf(apart), { origin: site.origin, partition: '' });
    assert.equal(await holds(apart, 'a'), true);
    await locks.close();
  });
});
