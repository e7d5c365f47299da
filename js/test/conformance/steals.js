// The option steal.

import { equal, ok, rejects, same } from './check.js';

const steal = { steal: true };

export const steals = [
  {
    id: 'F90',
    title: 'a steal of a free lock is granted',
    async run({ locks, base }) {
      equal(await locks.request(base, steal, (lock) => lock.name), base);
    },
  },
  {
    id: 'F91',
    title: "the victim's promise rejects with an AbortError",
    async run(t) {
      const victim = await t.hold(t.base);
      const thief = await t.hold(t.base, steal);
      const error = await rejects(victim.done, 'AbortError');
      ok(error instanceof DOMException);
      equal(error.code, DOMException.ABORT_ERR);
      thief.release();
      await thief.done;
    },
  },
  {
    id: 'F92',
    title: 'every shared holder is a victim',
    async run(t) {
      const victims = await Promise.all([1, 2, 3].map(() => t.hold(t.base, { mode: 'shared' })));
      const thief = await t.hold(t.base, steal);
      for (const { done } of victims) await rejects(done, 'AbortError');
      equal((await t.query()).held.length, 1);
      thief.release();
      await thief.done;
    },
  },
  {
    id: 'G7',
    title: 'three shared holders: three errors, one thief',
    async run(t) {
      const victims = await Promise.all([1, 2, 3].map(() => t.hold(t.base, { mode: 'shared' })));
      equal(await t.locks.request(t.base, steal, () => 'thief'), 'thief');
      const errors = await Promise.all(victims.map(({ done }) => rejects(done, 'AbortError')));
      equal(errors.length, 3);
    },
  },
  {
    id: 'F93',
    title: 'queued requests stay, and are granted after the thief',
    async run(t) {
      const victim = await t.hold(t.base);
      const order = [];
      const queued = t.locks.request(t.base, () => order.push('queued'));
      await t.locks.request(t.base, steal, () => order.push('thief'));
      await queued;
      same(order, ['thief', 'queued']);
      await rejects(victim.done, 'AbortError');
    },
  },
  {
    id: 'F94',
    title: 'the last thief wins',
    async run(t) {
      const [first, second] = [await t.hold(t.base, steal), await t.hold(t.base, steal)];
      await rejects(first.done, 'AbortError');
      second.release('second');
      equal(await second.done, 'second');
    },
  },
  {
    id: 'F95',
    title: 'the callback of a victim continues, and its end releases no lock',
    async run(t) {
      const victim = await t.hold(t.base);
      const thief = await t.hold(t.base, steal);
      const next = t.request(t.base);
      victim.release();
      await rejects(victim.done, 'AbortError');
      await t.quiet();
      equal(next.lock, undefined);
      thief.release();
      await next.granted;
      next.release();
      await next.done;
    },
  },
  {
    id: 'G9',
    title: "a victim's late end does not release the thief's lock",
    async run(t) {
      for (const end of ['release', 'fail']) {
        const victim = await t.hold(t.base);
        const thief = await t.hold(t.base, steal);
        victim[end](new Error('late'));
        await t.quiet();
        ok(!(await t.available(t.base)));
        await rejects(victim.done, 'AbortError');
        thief.release();
        await thief.done;
      }
    },
  },
  {
    id: 'F96',
    title: 'a steal does not affect other names',
    async run(t) {
      const [a, b] = [await t.hold(t.name(' a')), await t.hold(t.name(' b'))];
      await t.locks.request(t.name(' a'), steal, () => {});
      await rejects(a.done, 'AbortError');
      b.release('kept');
      equal(await b.done, 'kept');
    },
  },
  {
    id: 'G8',
    title: 'a steal does not affect other names and their queues',
    async run(t) {
      const [a, b] = [await t.hold(t.name(' a')), await t.hold(t.name(' b'))];
      const queued = t.request(t.name(' b'));
      await t.locks.request(t.name(' a'), steal, () => {});
      await t.quiet();
      equal(queued.lock, undefined);
      b.release();
      await queued.granted;
      queued.release();
      await Promise.all([b.done, queued.done, rejects(a.done, 'AbortError')]);
    },
  },
  {
    id: 'F97',
    title: 'a thief overtakes the queue, which keeps its order',
    async run(t) {
      const victim = await t.hold(t.base);
      const order = [];
      const queued = [1, 2].map((number) => t.locks.request(t.base, () => order.push(number)));
      const thief = await t.hold(t.base, steal);
      equal((await t.query()).pending.length, 2);
      thief.release();
      await Promise.all(queued);
      same(order, [1, 2]);
      await rejects(victim.done, 'AbortError');
    },
  },
  {
    id: 'F98',
    title: 'a lock stolen before its callback: the callback runs, the promise rejects',
    async run(t) {
      const victim = t.request(t.base);
      const thief = t.request(t.base, steal);
      const lock = await victim.granted;
      equal(lock.name, t.base);
      await rejects(victim.done, 'AbortError');
      await thief.granted;
      thief.release('kept');
      equal(await thief.done, 'kept');
    },
  },
  {
    id: 'S9',
    title: 'a lock stolen before its callback: its signal is aborted in the callback',
    needs: ['extended'],
    async run(t) {
      let known;
      const victim = t.extended.request(t.base, (lock) => {
        known = [lock.signal.aborted, lock.signal.reason.name, lock.signal.reason.cause];
      });
      const thief = t.request(t.base, steal, t.extended);
      const error = await rejects(victim, 'AbortError');
      equal(error.cause, 'Stolen');
      same(known, [true, 'AbortError', 'Stolen']);
      thief.release();
      await thief.done;
    },
  },
  {
    id: 'F99',
    title: 'a client can steal from itself, within the callback',
    async run(t) {
      let inner;
      const outer = t.locks.request(t.base, () => {
        inner = t.locks.request(t.base, steal, () => 'inner');
        return inner;
      });
      await rejects(outer, 'AbortError');
      equal(await inner, 'inner');
    },
  },
  {
    id: 'F100',
    title: 'a steal cannot be shared, conditional or aborted',
    async run({ locks, base }) {
      for (const options of [{ mode: 'shared' }, { ifAvailable: true }, { signal: new AbortController().signal }]) {
        await rejects(locks.request(base, { ...steal, ...options }, () => {}), 'NotSupportedError');
      }
    },
  },
  {
    id: 'S10',
    title: 'a stolen promise rejects even if its callback ends in the same turn',
    async run(t) {
      const victim = await t.hold(t.base);
      const thief = t.locks.request(t.base, steal, () => 'thief');
      victim.release('too late');
      await rejects(victim.done, 'AbortError');
      equal(await thief, 'thief');
    },
  },
];
