// The option `maxHold`: a lock is lost when its time is over.

import { equal, ok, rejects, same } from '../check.js';

const SHORT = 30;

export const holds = [
  {
    id: 'H01',
    title: 'a lock is lost after its time with its own cause, and then the next request is granted',
    async run(bench) {
      const { extended: locks, name } = bench;
      const order = [];
      const stuck = locks.request(name(), { maxHold: SHORT }, (lock) => {
        lock.signal.addEventListener('abort', () => order.push('lost'));
        return new Promise(() => {});
      });
      const next = locks.request(name(), () => order.push('next'));
      const error = await rejects(stuck, 'AbortError');
      equal(error.cause, 'HeldTooLong');
      await next;
      same(order, ['lost', 'next']);
    },
  },
  {
    id: 'H02',
    title: 'the time begins with the grant and ends with the release',
    async run(bench) {
      const { extended: locks, name } = bench;
      // On a slow machine the time may be over before the grant is seen.
      const outlast = async (granted) => {
        const { signal } = await granted.catch((error) => {
          equal(error.cause, 'HeldTooLong');
          return { signal: { aborted: true } };
        });
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      };
      const first = await locks.hold(name());
      const waiter = locks.hold(name(), { maxHold: SHORT });
      await outlast(locks.hold(name(' timer'), { maxHold: 3 * SHORT }));
      equal((await bench.query(locks)).pending.length, 1);
      first.release();
      await waiter.then((held) => held.release(), (error) => equal(error.cause, 'HeldTooLong'));
      const next = await locks.hold(name());
      await outlast(locks.hold(name(' timer'), { maxHold: 3 * SHORT }));
      ok(next.held);
      next.release();
    },
  },
  {
    id: 'H03',
    title: 'zero, an infinite time and what is no number are a TypeError',
    async run(bench) {
      const { extended: locks, name } = bench;
      for (const maxHold of [0, -1, -0.5, NaN, Infinity, 2 ** 53, 'soon', null, {}]) {
        await rejects(locks.request(name(), { maxHold }, () => {}), 'TypeError', String(maxHold));
        await rejects(locks.hold(name(), { maxHold }), 'TypeError', String(maxHold));
      }
      for (const maxHold of [1000.5, 2 ** 31, 2 ** 53 - 1]) {
        equal(await locks.request(name(), { maxHold }, () => 'done'), 'done');
      }
    },
  },
];
