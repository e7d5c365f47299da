// Partitions in real browsers: frames below another site, their workers, and storage buckets.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isSameSite } from '../../page/ancestry.js';
import { Browsers, soakedKinds, unlessFirefox } from '../browser/browsers.js';
import { startSite } from '../browser/site.js';
import { Service } from '../support/service.js';

test('origins are same-site if their hosts are equal or one is below the other', () => {
  for (const [one, other, same] of [
    ['https://a.example', 'https://a.example', true],
    ['https://a.example', 'https://a.example:8443', true],
    ['https://shop.a.example', 'https://a.example', true],
    ['https://a.example', 'https://shop.a.example', true],
    ['https://one.a.example', 'https://two.a.example', false],
    ['https://a.example', 'http://a.example', false],
    ['https://a.example', 'https://b.example', false],
    ['https://aa.example', 'https://a.example', false],
    ['https://a.example', 'https://example', false],
    ['http://127.0.0.1', 'http://localhost', false],
    ['https://a.example', 'null', false],
    ['null', 'null', false],
  ]) {
    assert.equal(isSameSite(one, other), same, `${one} ${other}`);
  }
});

for (const kind of soakedKinds) describe(`${kind.name}`, { skip: kind.missing }, () => {
  const browsers = new Browsers(kind);
  let site;
  let service;

  before(async () => {
    site = await startSite();
    service = await Service.start(['--allow-origin', site.origin]);
  });

  after(async () => {
    await browsers.close();
    await site.close();
    await service.kill();
  });

  const PLAIN = '/test/browser/plain.html';

  async function openPage(context, origin) {
    const page = await context.newPage();
    await page.goto(`${origin}${PLAIN}`);
    return page;
  }

  /** Opens a frame of an origin within a page or frame. */
  async function openFrame(within, origin) {
    const element = await within.evaluateHandle((src) => {
      const frame = document.createElement('iframe');
      frame.src = src;
      return new Promise((resolve) => {
        frame.onload = () => resolve(frame);
        document.body.append(frame);
      });
    }, `${origin}${PLAIN}`);
    return element.asElement().contentFrame();
  }

  /** Installs navlocks, with the functions `hold` and `available` for one name. */
  function installIn(frame, options = {}) {
    return frame.evaluate(async ([url, options]) => {
      const { connect, install } = await import('/browser.js');
      install(globalThis, { url, ...options });
      globalThis.connectAgain = () => connect(url, options);
      globalThis.hold = (name) => new Promise((granted) => {
        navigator.locks.request(name, () => {
          granted();
          return new Promise(() => {});
        });
      });
      globalThis.available = (name) => navigator.locks.request(name, { ifAvailable: true }, (lock) => lock !== null);
    }, [service.tcp, options]);
  }

  const hold = (frame, name) => frame.evaluate((name) => globalThis.hold(name), name);
  const available = (frame, name) => frame.evaluate((name) => globalThis.available(name), name);

  /** Returns whether a name is available in a worker of the frame, or in a nested worker. */
  const availableInWorker = (frame, name, nested = {}) => frame.evaluate((query) => {
    const worker = new Worker(`/test/browser/availability.js?${query}`, { type: 'module' });
    return new Promise((resolve, reject) => {
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.onmessage = ({ data }) => resolve(data);
    });
  }, `${new URLSearchParams({ service: service.tcp, name, ...nested })}`);

  test('F08 F133 S8 a frame below another site has its own partition, shared with its nested frames and workers', async () => {
    const context = await (await browsers.open()).newContext();
    const first = await openPage(context, site.origin);
    await installIn(first);
    await hold(first, 'first');

    const above = await openPage(context, site.other);
    const third = await openFrame(above, site.origin);
    await installIn(third);
    assert.equal(await available(third, 'first'), true, 'a third-party frame shares with the first party');
    await hold(third, 'third');
    assert.equal(await available(first, 'third'), true);

    // All frames and workers below the same top site share a partition.
    const nested = await openFrame(third, site.origin);
    await installIn(nested);
    const sibling = await openFrame(await openPage(context, site.other), site.origin);
    await installIn(sibling);
    for (const frame of [nested, sibling]) assert.equal(await available(frame, 'third'), false);
    for (const nested of [{}, { nested: '' }]) {
      assert.deepEqual([await availableInWorker(third, 'third', nested), await availableInWorker(third, 'first', nested)], [false, true]);
      assert.deepEqual([await availableInWorker(first, 'third', nested), await availableInWorker(first, 'first', nested)], [true, false]);
    }

    // A named partition of such a frame is within the frame's own partition.
    const apart = await third.evaluate(async () => {
      const locks = await globalThis.connectAgain();
      await locks.partition('named').hold('named');
      return locks.partition('named').request('named', { ifAvailable: true }, (lock) => lock === null);
    });
    assert.equal(apart, true);
    const spaceOf = (frame) => frame.evaluate(async () => (await globalThis.connectAgain()).space);
    assert.deepEqual(await spaceOf(first), { origin: site.origin, partition: '' });
    assert.deepEqual(await spaceOf(third), { origin: site.origin, partition: `below ${site.other}` });
    assert.equal(await first.evaluate(async () => {
      const locks = await globalThis.connectAgain();
      return locks.partition('named').request('named', { ifAvailable: true }, (lock) => lock !== null);
    }), true);
    await context.close();
  });

  test('F08 a frame with another site between it and the top page of its own origin has its own partition', async () => {
    const context = await (await browsers.open()).newContext();
    const first = await openPage(context, site.origin);
    await installIn(first);
    await hold(first, 'first');
    const between = await openFrame(first, site.other);
    const inner = await openFrame(between, site.origin);
    await installIn(inner);
    assert.equal(await available(inner, 'first'), true);
    // A frame with same-site ancestors alone has the partition of its page.
    const same = await openFrame(first, site.origin);
    await installIn(same);
    assert.equal(await available(same, 'first'), false);
    await context.close();
  });

  test('a frame below another site shares locks with the first party if partitioned is false', async () => {
    const context = await (await browsers.open()).newContext();
    const first = await openPage(context, site.origin);
    await installIn(first);
    await hold(first, 'shared');
    const third = await openFrame(await openPage(context, site.other), site.origin);
    await installIn(third, { partitioned: false });
    assert.equal(await available(third, 'shared'), false);
    await context.close();
  });

  test('F08 a storage bucket has its own locks, which end with it', { skip: unlessFirefox(kind, 'Firefox has no storage buckets') }, async () => {
    const context = await (await browsers.open()).newContext();
    const [one, two] = [await openPage(context, site.origin), await openPage(context, site.origin)];
    for (const page of [one, two]) await installIn(page);
    await hold(one, 'bucketed');
    const seen = await one.evaluate(async () => {
      const [inbox, drafts] = [await navigator.storageBuckets.open('inbox'), await navigator.storageBuckets.open('drafts')];
      globalThis.inbox = inbox;
      const available = (locks) => locks.request('bucketed', { ifAvailable: true }, (lock) => lock !== null);
      const seen = [inbox.locks === inbox.locks, inbox.locks instanceof LockManager, inbox.locks === navigator.locks, await available(inbox.locks)];
      await new Promise((granted) => {
        globalThis.lost = inbox.locks.request('bucketed', () => {
          granted();
          return new Promise(() => {});
        }).catch(({ name }) => name);
      });
      let illegal;
      try {
        Object.getOwnPropertyDescriptor(StorageBucket.prototype, 'locks').get.call({});
      } catch (error) {
        illegal = error instanceof TypeError;
      }
      return [...seen, await available(inbox.locks), await available(drafts.locks), illegal];
    });
    assert.deepEqual(seen, [true, true, false, true, false, true, true]);
    const theirs = await two.evaluate(async () => {
      const { locks } = await navigator.storageBuckets.open('inbox');
      const available = await locks.request('bucketed', { ifAvailable: true }, (lock) => lock !== null);
      await navigator.storageBuckets.delete('inbox');
      return available;
    });
    assert.equal(theirs, false);
    assert.equal(await one.evaluate(() => globalThis.lost), 'AbortError');
    assert.equal(await available(two, 'bucketed'), false, 'the locks of the page are gone too');
    await context.close();
  });
});
