// The option `timeout`.

import { equal, ok, rejects, same } from '../check.js';

export const timeouts = [
  {
    id: 'D09',
    title: 'a request with a timeout that is granted settles, and its lock is released',
    async run({ extended: locks, name, available }) {
      equal(await locks.request(name(), { timeout: 60_000 }, () => 'granted'), 'granted');
      equal(await available(name()), true);
    },
  },
  {
    id: 'D09',
    title: 'a timeout rejects with TimeoutError, leaves the queue, and grants waiters behind it',
    async run({ extended: locks, name }) {
      const reader = await locks.hold(name(), { mode: 'shared' });
      const writer = locks.hold(name(), { timeout: 20 });
      const follower = locks.hold(name(), { mode: 'shared' });
      const error = await rejects(writer, 'TimeoutError');
      ok(error instanceof DOMException);
      ok(/not free within 20 ms/.test(error.message), error.message);
      ok((await follower).held);
      reader.release();
      (await follower).release();
    },
  },
  {
    id: 'T05',
    title: 'a timeout of zero tries once and is never queued',
    async run({ extended: locks, name, query }) {
      equal(await locks.request(name(), { timeout: 0 }, () => 'free'), 'free');
      const held = await locks.hold(name());
      const tried = rejects(locks.hold(name(), { timeout: 0 }), 'TimeoutError');
      same((await query(locks)).pending, []);
      await tried;
      held.release();
    },
  },
  {
    id: 'D09',
    title: 'an invalid timeout is a TypeError, and an infinite one is no timeout',
    async run({ extended: locks, name }) {
      for (const timeout of [-1, NaN, 'soon', {}]) await rejects(locks.hold(name(), { timeout }), 'TypeError');
      for (const timeout of [Infinity, 2 ** 40, '60000']) (await locks.hold(name(), { timeout })).release();
      for (const options of [{ steal: true }, { ifAvailable: true }]) {
        await rejects(locks.hold(name(), { timeout: 1, ...options }), 'NotSupportedError');
      }
    },
  },
  {
    id: 'T06',
    title: 'a grant stops the timer: the lock is held after its timeout',
    async run({ extended: locks, name, available }) {
      const work = async () => {
        await new Promise((resolve) => setTimeout(resolve, 300));
        return (await available(name())) ? 'released' : 'kept';
      };
      equal(await locks.request(name(), { timeout: 250 }, work), 'kept');
    },
  },
  {
    id: 'D09',
    title: 'a timeout longer than a timer lasts does not fire at once',
    async run({ extended: locks, name, query }) {
      const held = await locks.hold(name());
      const patient = locks.hold(name(), { timeout: 2 ** 40 });
      await new Promise((resolve) => setTimeout(resolve, 20));
      equal((await query(locks)).pending.length, 1);
      held.release();
      (await patient).release();
    },
  },
];
