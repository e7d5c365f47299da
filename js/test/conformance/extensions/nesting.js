// Requests within held locks: certain and possible deadlocks, and reentrant requests.

import { equal, ok, rejects, same } from '../check.js';

const about = async (locks, id) => (await locks.deadlocks()).filter(({ ids }) => ids.includes(id));

export const nesting = [
  {
    id: 'B01 B02',
    title: 'locks nested in opposite order are a certain deadlock, and a possible one if no lock is named',
    async run({ extended: locks, name }) {
      const [a, b] = [await locks.hold(name('a')), await locks.hold(name('b'))];
      const controller = new AbortController();
      const { signal } = controller;
      const caught = () => {};
      const inA = locks.hold(b.name, { within: a, signal });
      const beside = locks.hold(a.name, { within: null, signal });
      const { held } = await locks.inspect();
      const [{ id }] = held.filter(({ scope }) => scope[0] === a.name);
      same(await about(locks, id), []);
      const inB = locks.hold(a.name, { within: b, signal });
      const [deadlock] = await about(locks, id);
      // The request beside stands between those two.
      same([deadlock.certain, deadlock.ids.length, deadlock.outer], [true, 5, undefined]);
      const all = Promise.allSettled([inA, beside, inB]).then(caught);
      controller.abort();
      await all;
      same(await about(locks, id), []);
      a.release();
      b.release();
    },
  },
  {
    id: 'B04',
    title: 'a request that waits for its own outer lock fails at once and names it',
    async run({ extended: locks, name }) {
      const outer = await locks.hold(name('a'));
      const between = await locks.hold(name('b'), { within: outer });
      const error = await rejects(locks.hold(outer.name, { within: between }), 'AbortError');
      const { held } = await locks.inspect();
      const [{ id }] = held.filter(({ scope }) => scope[0] === outer.name);
      same([error.cause.code, error.cause.outer, error.cause.certain], ['deadlock', id, true]);
      ok(error.message.includes(`was made within lock ${id}`), error.message);
      // One that does not wait gets its answer as before.
      equal(await locks.hold(outer.name, { within: between, ifAvailable: true }), null);
      between.release();
      outer.release();
      // A lock that is over is no outer one.
      (await locks.hold(outer.name, { within: outer })).release();
    },
  },
  {
    id: 'B06',
    title: 'a reentrant request works under an outer lock that covers it',
    async run({ extended: locks, name }) {
      const [a, b] = [name('a'), name('b')];
      await locks.request([a, b], { mode: 'shared' }, async (outer) => {
        const token = await locks.request(a, { mode: 'shared', reentrant: true, within: outer }, (lock) => lock.fencingToken);
        equal(token, outer.fencingToken);
        ok(outer.held);
        // A stricter mode needs a lock of its own, which would wait for the outer one.
        await rejects(locks.request(a, { reentrant: true, within: outer }, () => {}), 'AbortError');
        const other = await locks.request(name('c'), { reentrant: true, within: outer }, (lock) => lock.fencingToken);
        ok(other > outer.fencingToken);
      });
      await rejects(locks.hold(a, { reentrant: true }), 'TypeError');
    },
  },
  {
    id: 'B06',
    title: 'an outer lock is held until the work of its reentrant requests ends',
    async run({ extended: locks, name }) {
      const a = name('a');
      let finish;
      let inner;
      const outer = locks.request(a, (lock) => {
        inner = locks.request(a, { reentrant: true, within: lock }, (same) => new Promise((resolve) => (finish = () => resolve(same.held))));
      });
      const next = locks.request(a, () => 'next');
      await locks.query();
      equal(await locks.request(a, { ifAvailable: true }, (lock) => lock), null);
      finish();
      same([await inner, await outer, await next], [true, undefined, 'next']);
    },
  },
  {
    id: 'B06',
    title: 'a reentrant request whose outer handle is released meanwhile gets a lock of its own',
    async run({ extended: locks, name }) {
      const outer = await locks.hold(name('a'));
      const inner = locks.request(outer.name, { reentrant: true, within: outer }, (lock) => lock.fencingToken);
      const { fencingToken } = outer;
      outer.release();
      ok((await inner) > fencingToken);
    },
  },
  {
    id: 'B06',
    title: 'a reentrant request joins no lock of another lock space',
    async run({ extended: locks, name }) {
      const other = locks.partition(name('p'));
      await locks.request(name('a'), async (outer) => {
        const names = await other.request(outer.name, { reentrant: true, within: outer }, async () => (await other.query()).held);
        same(names.map((info) => info.name), [outer.name]);
      });
    },
  },
  {
    id: 'B04 B08',
    title: 'a callback that requests its own lock before it awaits gets an error, or waits in turn if it names no lock',
    async run({ extended: locks, name }) {
      const a = name('a');
      await locks.request(a, async (outer) => {
        const inner = locks.request(a, () => {});
        const tried = locks.request(a, { ifAvailable: true }, (lock) => lock);
        const joined = locks.request(a, { reentrant: true }, (lock) => lock.fencingToken);
        const { cause } = await rejects(inner, 'AbortError');
        same([cause.code, cause.certain], ['deadlock', true]);
        same([await tried, await joined], [null, outer.fencingToken]);
      });
      let later;
      await locks.request(a, () => {
        later = locks.request(a, { within: null }, () => 'later');
      });
      equal(await later, 'later');
    },
  },
  {
    id: 'B08',
    title: 'a chain of requests that begin in callbacks is within no lock that is over',
    async run({ extended: locks, name }) {
      const ended = name('ended');
      let last;
      await locks.request(ended, () => {
        last = locks.request(name('next'), () => locks.request(ended, () => 'granted'));
      });
      equal(await last, 'granted');
    },
  },
];
