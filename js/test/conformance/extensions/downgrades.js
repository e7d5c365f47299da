// The method `downgrade()` of locks.

import { equal, ok, rejects, same } from '../check.js';

export const downgrades = [
  {
    id: 'W01',
    title: 'a downgrade to shared keeps the token, grants readers at the head, and lets no writer between',
    async run(bench) {
      const { extended: locks, name } = bench;
      const lock = await locks.hold(name());
      const { fencingToken } = lock;
      const granted = [];
      const queue = (tag, mode) => {
        const handle = locks.hold(name(), { mode, tag });
        handle.then(() => granted.push(tag));
        return handle;
      };
      const reader = queue('reader', 'shared');
      const writer = queue('writer', 'exclusive');
      const last = queue('last', 'shared');
      const stream = locks.events();
      await lock.downgrade();
      same([lock.mode, lock.held, lock.fencingToken], ['shared', true, fencingToken]);
      await reader;
      const told = [];
      for await (const event of stream) {
        if (event.scope[0] !== name()) continue;
        told.push([event.type, event.mode, event.tag]);
        if (event.tag === 'reader') break;
      }
      same(told, [['downgraded', 'shared', undefined], ['granted', 'shared', 'reader']]);
      same((await bench.query(locks)).held.map(({ mode }) => mode), ['shared', 'shared']);
      (await reader).release();
      lock.release();
      (await writer).release();
      (await last).release();
      same(granted, ['reader', 'writer', 'last']);
    },
  },
  {
    id: 'W02',
    title: 'a downgrade to a larger limit grants those that fit, and an upgrade is refused',
    async run(bench) {
      const { extended: locks, name } = bench;
      const lock = await locks.hold(name());
      const waiters = [1, 2, 3].map(() => locks.hold(name(), { limit: 4 }));
      await lock.downgrade({ limit: 3 });
      same([lock.mode, lock.limit], ['shared', 3]);
      const [one, two] = await Promise.all(waiters.slice(0, 2));
      for (const stricter of [{ mode: 'exclusive' }, { limit: 1 }, { limit: 2 }]) {
        await rejects(lock.downgrade(stricter), 'InvalidStateError');
        equal(lock.limit, 3);
      }
      await lock.downgrade({ limit: 3 });
      equal((await bench.query(locks)).pending.length, 1);
      await lock.downgrade({ limit: 4 });
      for (const handle of [lock, one, two, await waiters[2]]) ok(handle.release());
    },
  },
  {
    id: 'W03',
    title: 'a downgrade of a lock that is lost or released is an error, as are bad options',
    async run(bench) {
      const { extended: locks, name } = bench;
      const lost = await locks.hold(name('lost'));
      equal(await locks.forceRelease(name('lost')), 1);
      const error = await rejects(lost.downgrade(), 'AbortError');
      equal(error.cause, 'ForceReleased');
      const released = await locks.hold(name());
      for (const wrong of [{ limit: 0 }, { limit: 1.5 }, { limit: 2, mode: 'exclusive' }, { mode: 'both' }, 7]) {
        await rejects(released.downgrade(wrong), 'TypeError');
      }
      equal(released.mode, 'exclusive');
      released.release();
      await rejects(released.downgrade(), 'InvalidStateError');
      await locks.request(name(), async (lock) => {
        await lock.downgrade();
        ok(await bench.available(name(), 'shared'));
      });
    },
  },
  {
    id: 'W05',
    title: 'a scope is downgraded on all its names at once',
    async run(bench) {
      const { extended: locks, name } = bench;
      const scope = [name(' a'), name(' b')];
      const lock = await locks.hold(scope);
      const reader = locks.hold(scope, { mode: 'shared' });
      await lock.downgrade();
      ok((await reader).release());
      equal(await bench.available(name(' a')), false);
      lock.release();
      ok(await bench.available(name(' b')));
    },
  },
];
