// Locks in a page that replaces functions of arrays, promises, collections and JSON, in real
// browsers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Browsers, soakedKinds } from '../browser/browsers.js';
import { startSite } from '../browser/site.js';
import { Service } from '../support/service.js';

for (const kind of soakedKinds) test(`locks never call functions that a page replaced on arrays, promises, collections or JSON, in ${kind.name}`, { skip: kind.missing }, async (t) => {
  const browsers = new Browsers(kind);
  t.after(() => browsers.close());
  const site = await startSite();
  t.after(() => site.close());
  const service = await Service.start(['--allow-origin', site.origin]);
  t.after(() => service.kill());
  const page = await (await browsers.open()).newPage();
  await page.goto(`${site.origin}/test/browser/plain.html`);
  const seen = await page.evaluate(async (url) => {
    const { connect, install } = await import('/browser.js');
    const { lineageOf } = await import('/lineage/lineage.js');
    const locks = await connect(url);
    const { acquire, auto, scoped } = lineageOf(locks);
    install(globalThis, { url });

    // WebIDL reads a scope by its iterator, so these scopes use neither arrays nor collections.
    const scopeOf = (one, other) => ({
      *[Symbol.iterator]() {
        yield one;
        yield other;
      },
    });
    const scopes = { both: scopeOf('x', 'y'), stolen: scopeOf('stolen', 'more'), l: scopeOf('l', 'm') };
    const used = {};
    const originals = [];
    const replace = (owner, prototype) => {
      const keys = Reflect.ownKeys(prototype);
      for (let index = 0; index < keys.length; index++) {
        const key = keys[index];
        const descriptor = Object.getOwnPropertyDescriptor(prototype, key);
        if (key === 'constructor' || typeof descriptor.value !== 'function') continue;
        originals[originals.length] = () => Object.defineProperty(prototype, key, descriptor);
        Object.defineProperty(prototype, key, {
          ...descriptor,
          value() {
            used[`${owner} ${String(key)}`] = new Error().stack.split('\n', 4)[2];
            return descriptor.value.apply(this, arguments);
          },
        });
      }
    };
    const iterators = [Object.getPrototypeOf(new Map().values()), Object.getPrototypeOf(new Set().values())];
    replace('Array', Array.prototype);
    replace('Promise', Promise.prototype);
    replace('Map', Map.prototype);
    replace('Set', Set.prototype);
    replace('WeakMap', WeakMap.prototype);
    for (let index = 0; index < iterators.length; index++) replace(`iterator ${index}`, iterators[index]);
    replace('JSON', JSON);
    // Old libraries define this method, and JSON.stringify() calls it.
    Array.prototype.toJSON = () => 'replaced';
    Object.defineProperty(Array.prototype, 'toJSON', { enumerable: false });

    const seen = {};
    await navigator.locks.request('a', async (lock) => {
      seen.name = lock.name;
      seen.held = (await navigator.locks.query()).held.length;
      seen.missed = await navigator.locks.request('a', { ifAvailable: true }, (given) => given);
      const controller = new AbortController();
      const waits = navigator.locks.request('a', { signal: controller.signal }, () => {});
      controller.abort();
      try {
        await waits;
      } catch (error) {
        seen.aborted = error.name;
      }
    });
    const handle = await locks.hold(scopes.both, { timeout: 60_000, tag: 'tagged' });
    seen.scope = handle.scope.length;
    const waiting = locks.request('y', { mode: 'shared' }, () => 'granted');
    const details = await locks.inspect();
    seen.tag = details.held[0].tag;
    seen.blockers = (await locks.blockers(details.pending[0].id)).held.length;
    seen.deadlocks = (await locks.deadlocks()).length;
    handle.release();
    seen.granted = await waiting;
    const victim = await locks.hold('stolen');
    await locks.request(scopes.stolen, { steal: true }, () => {});
    seen.lost = victim.signal.reason.cause;
    seen.forced = await locks.forceRelease('nothing');
    seen.partition = await locks.partition('p').request('a', () => 'partition');
    seen.acquired = await acquire('l', () => 'acquired');
    const lock = await auto.requestLock(scopes.l);
    await lock.waitUntil(null);
    seen.scoped = await scoped.requestLock('l', () => 'scoped');
    await locks.close();

    delete Array.prototype.toJSON;
    for (let index = 0; index < originals.length; index++) originals[index]();
    return { seen, used };
  }, service.tcp);
  assert.deepEqual(seen.used, {});
  assert.deepEqual(seen.seen, {
    name: 'a', held: 1, missed: null, aborted: 'AbortError', scope: 2, tag: 'tagged', blockers: 1, deadlocks: 0, granted: 'granted',
    lost: 'Stolen', forced: 0, partition: 'partition', acquired: 'acquired', scoped: 'scoped',
  });
});
