// Pages in real browsers while their service is killed or stopped, and restarted.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connect } from 'navlocks';
import { Browsers, soakedKinds } from '../browser/browsers.js';
import { startSite } from '../browser/site.js';
import { Service } from '../support/service.js';

for (const kind of soakedKinds) describe(`${kind.name} over restarts`, { skip: kind.missing }, () => {
  const browsers = new Browsers(kind);
  let site;

  before(async () => {
    site = await startSite();
  });

  after(async () => {
    await browsers.close();
    await site.close();
  });

  /** Opens a page with a connection in `globalThis.locks`. */
  async function openPage(url) {
    const page = await (await browsers.open()).newPage();
    await page.goto(`${site.origin}/test/browser/empty.html`);
    await page.evaluate(async (service) => {
      const { connect: connectPage } = await import('/browser.js');
      globalThis.locks = await connectPage(service);
    }, url);
    return page;
  }

  const state = (page, wanted) => page.waitForFunction((name) => globalThis.locks.connection.state === name, wanted);

  for (const signal of ['SIGKILL', 'SIGTERM']) {
    test(`pages keep locks, tokens and queue order over ${signal} and a restart`, async () => {
      const service = await Service.start(['--lease', '60s', '--allow-origin', site.origin]);
      const [first, second] = [await openPage(service.tcp), await openPage(service.tcp)];
      const program = await connect(service.tcp, { origin: site.origin });
      const token = await first.evaluate(async () => {
        globalThis.held = await globalThis.locks.hold('kept');
        return globalThis.held.fencingToken;
      });
      const order = [];
      await second.exposeFunction('grantedTo', (name) => order.push(name));
      const request = () => second.evaluate(async (name) => {
        globalThis.done = globalThis.locks.request('kept', () => globalThis.grantedTo(name));
        await globalThis.locks.query();
      }, 'the second page');
      await request();
      const last = program.request('kept', () => order.push('the program'));
      await program.query();
      for (let round = 0; round < 2; round++) {
        const noticed = [state(first, 'unreachable'), state(second, 'unreachable')];
        await service.kill(signal);
        await Promise.all(noticed);
        assert.deepEqual(await first.evaluate(() => [globalThis.held.held, globalThis.held.signal.aborted]), [true, false]);
        await service.start();
        await Promise.all([state(first, 'connected'), state(second, 'connected')]);
        const tokens = await first.evaluate(async () => (await globalThis.locks.inspect()).held.map(({ fencingToken }) => fencingToken));
        assert.deepEqual(tokens, [token]);
      }
      assert.deepEqual(order, []);
      assert.equal(await first.evaluate(() => globalThis.held.release()), true);
      await second.evaluate(() => globalThis.done);
      await last;
      assert.deepEqual(order, ['the second page', 'the program']);
      await program.close();
      await Promise.all([first.close(), second.close()]);
      await service.kill();
    });
  }

  test('a page loses its lock if its service is down beyond the lease, and its request is queued again', async () => {
    const service = await Service.start(['--lease', '2s', '--allow-origin', site.origin]);
    const page = await openPage(service.tcp);
    await page.evaluate(async () => {
      globalThis.held = await globalThis.locks.hold('lost');
      globalThis.next = globalThis.locks.hold('lost');
      await globalThis.locks.query();
    });
    await service.kill();
    await page.waitForFunction(() => globalThis.held.signal.aborted);
    assert.equal(await page.evaluate(() => globalThis.held.signal.reason.cause), 'LeaseLapsed');
    await service.start();
    assert.ok(await page.evaluate(async () => (await globalThis.next).fencingToken > globalThis.held.fencingToken));
    await page.close();
    await service.kill();
  });
});
