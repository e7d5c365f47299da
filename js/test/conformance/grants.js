// Grant, callback, release.

import { equal, ok, rejects, same, throws } from './check.js';

export const grants = [
  {
    id: 'F40',
    title: 'a callback never runs within the call',
    async run({ locks, base }) {
      let ran = false;
      const done = locks.request(base, () => {
        ran = true;
      });
      equal(ran, false);
      await done;
      equal(ran, true);
    },
  },
  {
    id: 'M1',
    title: 'a callback runs in a turn of its own, after all promise jobs that were ready',
    async run({ locks, base }) {
      const order = [];
      const done = locks.request(base, () => order.push('callback'));
      let jobs = Promise.resolve();
      for (let index = 0; index < 20; index++) jobs = jobs.then(() => order.push(index));
      await Promise.all([done, jobs]);
      equal(order.indexOf('callback'), 20);
    },
  },
  {
    id: 'S2',
    title: 'between two callbacks all promise jobs of the first are done',
    async run({ locks, base }) {
      const order = [];
      const callback = (number) => async () => {
        order.push(`callback ${number}`);
        let jobs = Promise.resolve();
        for (let index = 0; index < 5; index++) jobs = jobs.then(() => {});
        await jobs;
        order.push(`jobs ${number}`);
      };
      await Promise.all([locks.request(`${base} 1`, callback(1)), locks.request(`${base} 2`, callback(2))]);
      same(order, ['callback 1', 'jobs 1', 'callback 2', 'jobs 2']);
    },
  },
  {
    id: 'S2',
    title: 'a loop of requests does not starve timers',
    async run({ locks, base }) {
      let fired = false;
      setTimeout(() => {
        fired = true;
      });
      for (let count = 0; !fired; count++) {
        await locks.request(base, () => {});
        ok(count < 10_000_000, 'the timer starved');
      }
    },
  },
  {
    id: 'F41',
    title: 'a callback gets exactly one argument, a Lock that cannot be written to',
    async run({ locks, base, provider: { Lock } }) {
      await locks.request(base, function (...given) {
        equal(given.length, 1);
        const [lock] = given;
        ok(lock instanceof Lock);
        throws(() => {
          'use strict';
          lock.name = 'other';
        }, TypeError);
        equal(lock.name, base);
        equal(this, undefined);
      });
    },
  },
  {
    id: 'F42',
    title: 'a lock has its name and mode, also after its end',
    async run({ locks, base }) {
      const exclusive = await locks.request(base, (lock) => lock);
      const shared = await locks.request(base, { mode: 'shared' }, (lock) => lock);
      same([exclusive.name, exclusive.mode, shared.name, shared.mode], [base, 'exclusive', base, 'shared']);
    },
  },
  {
    id: 'F43',
    title: 'a plain value becomes the result',
    async run({ locks, base }) {
      for (const value of [123, undefined, null, 'text', Symbol.iterator]) equal(await locks.request(base, () => value), value);
    },
  },
  {
    id: 'F44',
    title: 'the promise rejects with the error of the callback, thrown or rejected',
    async run({ locks, base }) {
      for (const reason of [new Error('thrown'), undefined, 'text', { plain: true }]) {
        await rejects(locks.request(base, () => { throw reason; }), { value: reason });
        await rejects(locks.request(base, async () => { throw reason; }), { value: reason });
      }
    },
  },
  {
    id: 'F45',
    title: 'a callback that throws releases the lock',
    async run(t) {
      await rejects(t.locks.request(t.base, () => { throw new Error('thrown'); }), 'Error');
      ok(await t.available(t.base));
    },
  },
  {
    id: 'G1',
    title: 'a callback that throws passes the lock to the next waiter',
    async run({ locks, base }) {
      const thrown = locks.request(base, () => { throw new Error('thrown'); });
      const next = locks.request(base, () => 'granted');
      await rejects(thrown, 'Error');
      equal(await next, 'granted');
    },
  },
  {
    id: 'F46',
    title: 'a returned thenable is followed, a thrown one is not',
    async run({ locks, base }) {
      equal(await locks.request(base, () => ({ then: (resolve) => resolve(7) })), 7);
      let followed = false;
      const thenable = { then() { followed = true; } };
      // Kept out of a promise, which would follow the thenable.
      const thrown = await locks.request(base, () => { throw thenable; }).then(() => [], (error) => [error]);
      equal(thrown[0], thenable);
      equal(followed, false);
    },
  },
  {
    id: 'F47',
    title: 'a lock is held until the promise of its callback fulfils or rejects',
    async run(t) {
      for (const end of ['release', 'fail']) {
        const held = await t.hold(t.base);
        const order = [];
        const next = t.locks.request(t.base, () => order.push('granted'));
        await t.quiet();
        same(order, []);
        order.push(end);
        held[end]();
        await next;
        same(order, [end, 'granted']);
      }
    },
  },
  {
    id: 'F48',
    title: 'the request settles after its callback has',
    async run({ locks, base }) {
      const order = [];
      await locks.request(base, async () => {
        order.push('holding');
        await null;
        order.push('returned');
      }).then(() => order.push('settled'));
      same(order, ['holding', 'returned', 'settled']);
    },
  },
  {
    id: 'F49',
    title: 'when the request has settled the lock is free',
    async run(t) {
      await t.locks.request(t.base, () => {});
      ok(await t.available(t.base));
      await rejects(t.locks.request(t.base, async () => { throw new Error('thrown'); }), 'Error');
      ok(await t.available(t.base));
    },
  },
  {
    id: 'M4',
    title: 'after an awaited request the name is available, a thousand times in a row',
    patience: 12,
    async run(t) {
      for (let count = 0; count < 1000; count++) {
        await t.locks.request(t.base, () => {});
        ok(await t.available(t.base), `not free after request ${count}`);
      }
    },
  },
  {
    id: 'F50',
    title: 'a release takes effect after the requests made before it',
    async run(t) {
      const [a, b] = [t.name(' a'), t.name(' b')];
      const granted = [];
      let inner;
      await t.locks.request(a, async () => {
        // The standard knows no outer lock; `locks` of this package fail without the option.
        inner = Promise.all([t.locks.request(a, { within: null }, () => granted.push(1)), t.locks.request(b, () => granted.push(2))]);
      });
      await inner;
      same(granted, [2, 1]);
    },
  },
  {
    id: 'M2',
    title: 'requests made before a release are processed before it',
    async run(t) {
      const order = [];
      const first = t.locks.request(t.base, () => order.push('first'));
      const second = t.locks.request(t.base, () => order.push('second'));
      const third = t.locks.request(t.name(' other'), () => order.push('other'));
      await Promise.all([first, second, third]);
      same(order, ['first', 'other', 'second']);
    },
  },
  {
    id: 'F51',
    title: 'a callback that never settles holds for ever',
    async run(t) {
      t.locks.request(t.base, () => new Promise(() => {}));
      await t.quiet();
      // A registry, because a look at a WeakRef keeps its target over the collection that is under
      // way.
      let collected = false;
      const garbage = new FinalizationRegistry(() => (collected = true));
      garbage.register({});
      // Where no function collects garbage, a growing heap does.
      const kept = [garbage];
      const collect = globalThis.gc ?? (() => kept.push(Array.from({ length: 100_000 }, () => ({}))));
      for (let round = 0; round < 200 && !collected; round++) {
        await t.quiet();
        collect();
      }
      ok(collected, 'nothing was collected');
      kept.length = 0;
      await t.quiet();
      equal((await t.query()).held.length, 1);
      ok(!(await t.available(t.base)));
    },
  },
  {
    id: 'F52 D14',
    title: 'the result is the same value, fulfilled or rejected',
    async run({ locks, base }) {
      const value = { very: 'value' };
      equal(await locks.request(base, async () => value), value);
      equal(await locks.request(base, { ifAvailable: true }, () => value), value);
      await rejects(locks.request(base, () => Promise.reject(value)), { value });
    },
  },
  {
    id: 'S16',
    title: 'the next request is granted before the old promise resolves',
    async run(t) {
      const old = await t.hold(t.base);
      const next = t.request(t.base);
      old.release('value');
      equal(await old.done, 'value');
      // The query follows the promise, and the grant precedes it.
      const { held, pending } = await t.query();
      same([held.length, pending.length], [1, 0]);
      await next.granted;
      next.release();
      await next.done;
    },
  },
];
