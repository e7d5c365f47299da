// The option ifAvailable.

import { equal, ok, rejects, same } from './check.js';

const iA = { ifAvailable: true };

export const ifAvailable = [
  {
    id: 'F70',
    title: 'available, unavailable, and every pair of modes',
    async run(t) {
      ok(await t.available(t.base));
      for (const [held, wanted, expected] of [
        ['exclusive', 'exclusive', false],
        ['exclusive', 'shared', false],
        ['shared', 'exclusive', false],
        ['shared', 'shared', true],
      ]) {
        const holder = await t.hold(t.base, { mode: held });
        equal(await t.available(t.base, wanted), expected, `${wanted} beside ${held}:`);
        ok(await t.available(t.name(' other'), wanted));
        holder.release();
        await holder.done;
      }
    },
  },
  {
    id: 'F71',
    title: 'the result of a callback that gets null is the result of the request',
    async run(t) {
      const held = await t.hold(t.base);
      const reason = new Error('thrown');
      equal(await t.locks.request(t.base, iA, (lock) => (lock === null ? 123 : 0)), 123);
      await rejects(t.locks.request(t.base, iA, () => { throw reason; }), { value: reason });
      await rejects(t.locks.request(t.base, iA, async () => { throw reason; }), { value: reason });
      held.release();
      await held.done;
    },
  },
  {
    id: 'F72 D15',
    title: 'an unavailable request is never queued, and its callback runs once',
    async run(t) {
      const held = await t.hold(t.base);
      const answers = [];
      let end;
      const missed = t.locks.request(t.base, iA, (lock) => {
        answers.push(lock);
        return new Promise((resolve) => {
          end = resolve;
        });
      });
      await t.quiet();
      const { held: holders, pending } = await t.query();
      same([holders.length, pending.length], [1, 0]);
      held.release();
      await held.done;
      await t.quiet();
      same(answers, [null]);
      ok(await t.available(t.base));
      end();
      await missed;
    },
  },
  {
    id: 'F73',
    title: 'a waiter makes a lock unavailable even if the held modes are compatible',
    async run(t) {
      const held = await t.hold(t.base, { mode: 'shared' });
      const writer = t.request(t.base);
      ok(!(await t.available(t.base, 'shared')));
      held.release();
      await writer.granted;
      writer.release();
      await writer.done;
    },
  },
  {
    id: 'G4',
    title: 'a request gets null if the queue is not empty, and does not wait',
    async run(t) {
      const held = await t.hold(t.base, { mode: 'shared' });
      const writer = t.request(t.base);
      equal(await t.locks.request(t.base, { mode: 'shared', ifAvailable: true }, (lock) => lock), null);
      held.release();
      await writer.granted;
      writer.release();
      await writer.done;
    },
  },
  {
    id: 'F74',
    title: 'an unavailable request does not change the queue',
    async run(t) {
      const held = await t.hold(t.base);
      const order = [];
      const waiting = [1, 2].map((number) => t.locks.request(t.base, () => order.push(number)));
      ok(!(await t.available(t.base)));
      equal((await t.query()).pending.length, 2);
      held.release();
      await Promise.all(waiting);
      same(order, [1, 2]);
    },
  },
  {
    id: 'F75',
    title: 'the callback runs asynchronously in both cases',
    async run(t) {
      let ran = false;
      const free = t.locks.request(t.base, iA, () => { ran = true; });
      equal(ran, false);
      await free;
      const held = await t.hold(t.base);
      ran = false;
      const taken = t.locks.request(t.base, iA, () => { ran = true; });
      equal(ran, false);
      await taken;
      held.release();
      await held.done;
    },
  },
];
