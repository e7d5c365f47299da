// navlocks in real browsers, through a real service.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connect } from 'navlocks';
import { Browsers, kinds, unlessFirefox } from '../browser/browsers.js';
import { startSite } from '../browser/site.js';
import { startAgent } from '../support/processes.js';
import { Service } from '../support/service.js';

/** So long that only the end of a client releases its locks, and never the end of a lease. */
const lease = 600_000;

for (const kind of kinds) describe(`${kind.name}`, { skip: kind.missing }, () => {
  const browsers = new Browsers(kind);
  let site;
  let service;

  before(async () => {
    site = await startSite();
    service = await Service.start(['--lease-max', '10m', '--allow-origin', site.origin]);
  });

  after(async () => {
    await browsers.close();
    await site.close();
    await service.kill();
  });

  /** Opens a page with navlocks installed, in a context of its own. */
  async function openPage() {
    const context = await (await browsers.open()).newContext();
    const page = await context.newPage();
    await page.goto(`${site.origin}/test/browser/plain.html`);
    await installIn(page);
    return page;
  }

  function installIn(frame) {
    return frame.evaluate(async ([url, lease]) => {
      const { install } = await import('/browser.js');
      install(globalThis, { url, lease });
      globalThis.outcomes = {};
      // Holds a lock until the end of the page. Resolves when it is granted.
      globalThis.hold = (name) => new Promise((granted) => {
        const done = navigator.locks.request(name, () => {
          granted();
          return new Promise(() => {});
        });
        done.catch(({ name: error, cause }) => {
          globalThis.outcomes[name] = `${error} ${cause}`;
        });
      });
    }, [service.tcp, lease]);
  }

  const holdIn = (page, name) => page.evaluate((name) => globalThis.hold(name), name);

  test('F09 P02 S8 D18 an opaque origin gets SecurityError', async () => {
    const page = await openPage();
    const names = await page.evaluate(async (url) => {
      const frame = document.createElement('iframe');
      frame.sandbox = 'allow-scripts';
      frame.srcdoc = `<script type="module">
        import { connect, install } from '${location.origin}/browser.js';
        import { lineageOf } from '${location.origin}/lineage/lineage.js';
        const locks = install(globalThis, { url: '${url}' });
        const { acquire, auto, explicit, forceRelease, query, requestFlag, scoped } = lineageOf(locks);
        const calls = [
          () => locks.request('a', () => {}), () => locks.request('-', () => {}), () => locks.query(), () => connect('${url}'),
          () => acquire('a', () => {}), () => query(), async () => forceRelease('a'), () => requestFlag('a', 'shared'),
          () => auto.requestLock('a'), () => explicit.requestLock('a'), () => scoped.requestLock('a', () => {}),
        ];
        const names = [];
        for (const call of calls) names.push(await call().then(() => 'no error', ({ name }) => name));
        parent.postMessage(names, '*');
      </script>`;
      const received = new Promise((resolve) => addEventListener('message', ({ data }) => resolve(data), { once: true }));
      document.body.append(frame);
      return received;
    }, service.tcp);
    assert.deepEqual(names, Array(11).fill('SecurityError'));
    await page.context().close();
  });

  test('F11 S7 D18 a detached document gets InvalidStateError before all other checks', async () => {
    const page = await openPage();
    const frame = await page.evaluateHandle(() => {
      const element = document.createElement('iframe');
      element.src = 'plain.html';
      return new Promise((resolve) => {
        element.onload = () => resolve(element);
        document.body.append(element);
      });
    });
    await installIn(await frame.contentFrame());
    const names = await frame.evaluate(async (element) => {
      const { navigator, Promise: Theirs, DOMException: TheirException } = element.contentWindow;
      const { locks } = navigator;
      // The frame's own instance of the module knows the frame's locks.
      const { lineageOf } = await element.contentWindow.eval("import('/lineage/lineage.js')");
      const { acquire, auto, query, requestFlag, scoped } = lineageOf(locks);
      element.remove();
      const names = [];
      const calls = [
        () => locks.request('a', () => {}), () => locks.request('-', () => {}), () => locks.query(),
        () => acquire('a', () => {}), () => query(), () => requestFlag('a', 'shared'),
        () => auto.requestLock('a'), () => scoped.requestLock('a', () => {}),
      ];
      for (const call of calls) {
        const promise = call();
        // Firefox runs no promise job of a detached document, so its promise is not awaited.
        const error = await new Promise((resolve) => promise.then(resolve, resolve));
        names.push(error.name, promise instanceof Theirs, error instanceof TheirException);
      }
      return names;
    });
    assert.deepEqual(names, Array(8).fill(['InvalidStateError', true, true]).flat());
    await page.context().close();
  });

  test('F10 an insecure context does not see the API', async () => {
    const context = await (await browsers.open()).newContext();
    const page = await context.newPage();
    await page.goto(`${site.insecure}/test/browser/plain.html`);
    const [secure, error, ...seen] = await page.evaluate(async (url) => {
      const { install } = await import('/browser.js');
      let error;
      try {
        install(globalThis, { url });
      } catch (caught) {
        error = caught.name;
      }
      return [isSecureContext, error, 'locks' in navigator, 'LockManager' in globalThis, 'Lock' in globalThis];
    }, service.tcp);
    assert.deepEqual([secure, error, ...seen], [false, 'SecurityError', false, false, false]);
    await context.close();
  });

  for (const [how, end] of [
    ['is closed', (page) => page.close()],
    ['is reloaded', (page) => page.reload()],
    ['is navigated', (page) => page.goto(`${site.origin}/test/browser/empty.html`)],
    ['crashes', kind.crash],
  ]) {
    const skip = end === undefined && `nothing crashes a page of ${kind.name}`;
    test(`F122 F132 X38 S5 the next page gets the lock when the holder ${how}`, { skip }, async () => {
      const [first, second] = [await openPage(), await openPage()];
      await holdIn(first, `primary that ${how}`);
      const next = holdIn(second, `primary that ${how}`);
      await end(first);
      await next;
      await second.context().close();
      await first.context().close();
    });
  }

  test('F126 F127 X30 decision 7 a page in the back/forward cache loses its locks and keeps its requests', { skip: unlessFirefox(kind, 'Firefox caches no page of this driver') }, async () => {
    const [aside, other] = [await openPage(), await openPage()];
    await holdIn(aside, 'put aside');
    await holdIn(other, 'wanted');
    const waits = aside.evaluate(() => {
      globalThis.hold('wanted').then(() => {
        globalThis.granted = true;
      });
      // The answer shows that the service received the request.
      return navigator.locks.query();
    });
    await waits;
    await aside.evaluate(() => {
      globalThis.here = 'the same page';
    });
    await aside.goto(`${site.origin}/test/browser/empty.html`);
    await holdIn(other, 'put aside');
    // The page comes from the cache, so it does not load again.
    await aside.goBack({ waitUntil: 'commit' });
    assert.equal(await aside.evaluate(() => globalThis.here), 'the same page', 'the page was not cached');
    await aside.waitForFunction(() => globalThis.outcomes['put aside'] !== undefined);
    assert.equal(await aside.evaluate(() => globalThis.outcomes['put aside']), 'AbortError Suspended');
    assert.equal(await aside.evaluate(() => globalThis.granted), undefined);
    await other.context().close();
    await aside.waitForFunction(() => globalThis.granted === true);
    await aside.context().close();
  });

  test('X29 F125 G15 two processes and a page contend for one lock, and each of them is killed', async (t) => {
    // The processes join the lock space of the page's origin.
    const origin = site.origin;
    Object.assign(process.env, { NAVLOCKS_TEST_TCP: service.tcp, NAVLOCKS_TEST_ORIGIN: origin });
    const locks = await connect(service.tcp, { origin });
    t.after(() => locks.close());
    const page = await openPage();
    const processes = [await startAgent('service-tcp', locks), await startAgent('service-tcp', locks)];
    // All request the lock, in this order.
    await processes[0].hold('one for all');
    const inPage = holdIn(page, 'one for all');
    await page.evaluate(() => navigator.locks.query());
    const second = await processes[1].request('one for all');
    const names = async () => {
      const { held, pending } = await locks.query();
      return [held, pending].map((list) => list.filter(({ name }) => name === 'one for all').length);
    };
    assert.deepEqual(await names(), [1, 2]);
    await processes[0].kill();
    await inPage;
    assert.deepEqual(await names(), [1, 1]);
    await (kind.crash?.(page) ?? page.close());
    await second.granted;
    assert.deepEqual(await names(), [1, 0]);
    // A process receives the loss when a page steals.
    const thief = await openPage();
    await thief.evaluate(() => navigator.locks.request('one for all', { steal: true }, () => {}));
    assert.equal(await second.outcome, 'rejected AbortError');
    await processes[1].kill();
    assert.deepEqual(await names(), [0, 0]);
    await thief.context().close();
    await page.context().close();
  });
});
