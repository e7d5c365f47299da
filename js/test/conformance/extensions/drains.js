// The method `drain()` of locks.

import { equal, ok, rejects, same } from '../check.js';

export const drains = [
  {
    id: 'extension',
    title: 'drain() refuses requests, and resolves when the last lock is released',
    async run(bench) {
      const { name } = bench;
      const locks = bench.extended.partition(name());
      const held = await locks.hold('a');
      const stopping = new AbortController();
      const waiting = locks.request('a', { signal: stopping.signal }, () => {});
      let answer, working;
      await new Promise((begun) => {
        working = locks.request('b', () => {
          begun();
          return new Promise((resolve) => (answer = resolve));
        });
      });
      let isDrained = false;
      const drained = locks.drain().then(() => (isDrained = true));
      for (const options of [{}, { ifAvailable: true }, { steal: true }, { mode: 'shared' }]) {
        await rejects(locks.request('c', options, () => {}), 'InvalidStateError');
        await rejects(locks.hold('c', options), 'InvalidStateError');
      }
      // Queries are answered, and other clients are served.
      equal((await locks.query()).held.length, 2);
      equal(await bench.extended.request(name('other'), () => 'served'), 'served');
      stopping.abort();
      await rejects(waiting, 'AbortError');
      ok(held.release());
      await locks.query();
      equal(isDrained, false);
      answer('done');
      equal(await working, 'done');
      await drained;
      same([isDrained, await locks.drain()], [true, undefined]);
    },
  },
  {
    id: 'extension',
    title: 'drain() counts lost locks, requests that fail and those that are not available as over',
    async run({ extended, name }) {
      const locks = extended.partition(name());
      await extended.partition(name('idle')).drain();
      const lost = await locks.hold('a');
      equal(await locks.hold('a', { ifAvailable: true }), null);
      await rejects(locks.hold('a', { timeout: 1 }), 'TimeoutError');
      await rejects(locks.request('b', () => Promise.reject(new DOMException('no', 'DataError'))), 'DataError');
      const drained = locks.drain();
      equal(await locks.forceRelease('a'), 1);
      await drained;
      equal(lost.held, false);
    },
  },
];
