// Locks of a service beside the browser's own, in real browsers.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Browsers, soakedKinds } from '../browser/browsers.js';
import { bundled, startSite } from '../browser/site.js';
import { Service } from '../support/service.js';

for (const kind of soakedKinds) describe(`${kind.name} with native: 'also'`, { skip: kind.missing }, () => {
  const browsers = new Browsers(kind);
  let site;
  let service;
  let context;

  before(async () => {
    site = await startSite({ '/browser.js': bundled('browser.js') });
    service = await Service.start(['--allow-origin', site.origin]);
    context = await (await browsers.open()).newContext();
  });

  after(async () => {
    await browsers.close();
    await site.close();
    await service.kill();
  });

  /** Opens a page with the browser's own locks, or with navlocks and these options. */
  async function openPage(options) {
    const page = await context.newPage();
    await page.goto(`${site.origin}/test/browser/plain.html`);
    await page.evaluate(async ([url, options]) => {
      if (options !== undefined) {
        const { connect, install } = await import('/browser.js');
        install(globalThis, { url, ...options });
        globalThis.extended = await connect(url, options);
      }
      globalThis.held = {};
      // Resolves when the lock is granted. `held` has its release function, `outcome` its result.
      globalThis.hold = (name, options = {}) => new Promise((granted, refused) => {
        const outcome = navigator.locks.request(name, options, () => new Promise((release) => {
          globalThis.held[name] = { release };
          granted();
        }));
        outcome.catch(refused);
        globalThis.outcome = outcome.then((value) => value, (error) => `${error.name} ${error.cause}`);
      });
      globalThis.available = (name, mode = 'exclusive') => navigator.locks.request(name, { mode, ifAvailable: true }, (lock) => lock !== null);
    }, [service.tcp, options]);
    return page;
  }

  const hold = (page, name, options) => page.evaluate(([name, options]) => globalThis.hold(name, options), [name, options]);
  const release = (page, name, value) => page.evaluate(([name, value]) => globalThis.held[name].release(value), [name, value]);
  const available = (page, ...given) => page.evaluate((given) => globalThis.available(...given), given);
  // Another page may see the lock as free a moment later than the one that released it.
  const granted = (page, name) => page.evaluate((name) => navigator.locks.request(name, () => true), name);
  const outcome = (page) => page.evaluate(() => globalThis.outcome);

  test('a lock excludes holders of the browser’s own lock, in both directions, and releases both', async () => {
    const [old, both, other] = [await openPage(), await openPage({ native: 'also' }), await openPage({ native: 'also' })];
    await hold(old, 'a');
    assert.equal(await available(both, 'a'), false);
    const waits = hold(both, 'a');
    await both.evaluate(() => navigator.locks.query());
    await release(old, 'a');
    await waits;
    assert.deepEqual([await available(old, 'a'), await available(other, 'a')], [false, false]);
    await release(both, 'a', 'value');
    assert.equal(await outcome(both), 'value');
    assert.deepEqual([await granted(old, 'a'), await granted(other, 'a')], [true, true]);
    await hold(both, 'b', { mode: 'shared' });
    assert.deepEqual([await available(old, 'b'), await available(old, 'b', 'shared'), await available(other, 'b', 'shared')], [false, true, true]);
    await release(both, 'b');
    for (const page of [old, both, other]) await page.close();
  });

  test('a steal of either half loses the lock, and the other half is released', async () => {
    const [old, both, other] = [await openPage(), await openPage({ native: 'also' }), await openPage({ native: 'also' })];
    await hold(both, 'stolen');
    await old.evaluate(() => navigator.locks.request('stolen', { steal: true }, () => {}));
    assert.equal(await outcome(both), 'AbortError Stolen');
    assert.equal(await available(other, 'stolen'), true);
    await hold(both, 'stolen');
    await other.evaluate(() => navigator.locks.request('stolen', { steal: true }, () => {}));
    assert.equal(await outcome(both), 'AbortError Stolen');
    assert.equal(await available(old, 'stolen'), true);
    for (const page of [old, both, other]) await page.close();
  });

  test('an abort while the browser’s half is pending releases the service’s half', async () => {
    const [old, both, other] = [await openPage(), await openPage({ native: 'also' }), await openPage({ native: 'also' })];
    await hold(old, 'aborted');
    const name = await both.evaluate(async () => {
      const controller = new AbortController();
      const outcome = navigator.locks.request('aborted', { signal: controller.signal }, () => {}).catch(({ name }) => name);
      // Waits until the service's half is held.
      while ((await navigator.locks.query()).held.length === 0);
      controller.abort();
      return outcome;
    });
    assert.equal(name, 'AbortError');
    await release(old, 'aborted');
    await other.evaluate(() => navigator.locks.request('aborted', () => {}));
    assert.equal(await available(old, 'aborted'), true);
    for (const page of [old, both, other]) await page.close();
  });

  test('a scope holds all of its names in the browser too', async () => {
    const [old, both] = [await openPage(), await openPage({ native: 'also' })];
    await both.evaluate(async () => {
      globalThis.scoped = await globalThis.extended.hold(['x', 'y']);
    });
    assert.deepEqual([await available(old, 'x'), await available(old, 'y'), await available(old, 'z')], [false, false, true]);
    await both.evaluate(() => globalThis.scoped.release());
    await old.evaluate(() => navigator.locks.request('x', () => navigator.locks.request('y', () => {})));
    for (const page of [old, both]) await page.close();
  });

  test('a scope that loses a name before its grant fails, and both halves are released', async () => {
    const [old, both] = [await openPage(), await openPage({ native: 'also' })];
    await hold(old, 'second');
    await both.evaluate(() => {
      globalThis.scoped = globalThis.extended.hold(['first', 'second']).then(() => 'granted', ({ name, cause }) => `${name} ${cause}`);
    });
    // Waits until the browser's lock on the first name is held.
    await old.evaluate(async () => {
      while (!(await navigator.locks.query()).held.some(({ name }) => name === 'first'));
      await navigator.locks.request('first', { steal: true }, () => {});
    });
    await release(old, 'second');
    assert.equal(await both.evaluate(() => globalThis.scoped), 'AbortError Stolen');
    assert.deepEqual([await available(old, 'first'), await available(old, 'second')], [true, true]);
    assert.deepEqual([await available(both, 'first'), await available(both, 'second')], [true, true]);
    for (const page of [old, both]) await page.close();
  });

  test('a page that ends releases both halves', async () => {
    const [old, both, other] = [await openPage(), await openPage({ native: 'also' }), await openPage({ native: 'also' })];
    await hold(both, 'ended');
    // Each of the two releases after its grant, so both are granted.
    const passes = [old, other].map((page) => hold(page, 'ended').then(() => release(page, 'ended')));
    await both.close();
    await Promise.all(passes);
    for (const page of [old, other]) await page.close();
  });

  test('the browser’s own locks are independent by default, and a wrong option is refused', async () => {
    const [old, plain] = [await openPage(), await openPage({})];
    await hold(old, 'apart');
    assert.equal(await available(plain, 'apart'), true);
    const errors = await plain.evaluate(async (url) => {
      const { install } = await import('/browser.js');
      const errors = [];
      for (const native of ['beside', 5]) {
        try {
          install(globalThis, { url, native });
        } catch ({ name }) {
          errors.push(name);
        }
      }
      return errors;
    }, service.tcp);
    assert.deepEqual(errors, ['TypeError', 'TypeError']);
    for (const page of [old, plain]) await page.close();
  });
});
