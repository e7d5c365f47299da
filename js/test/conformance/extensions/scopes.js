// Scopes, partitions, and requests that overtake.

import { equal, ok, rejects, same } from '../check.js';

export const scopes = [
  {
    id: 'Q02',
    title: 'an array of names is a scope: sorted, without duplicates, frozen',
    async run({ extended: locks, name }) {
      const [a, b] = [name('a'), name('b')];
      await locks.request([b, a, b], (lock) => {
        same(lock.scope, [a, b]);
        ok(Object.isFrozen(lock.scope));
        equal(lock.name, `${a},${b}`);
      });
      await locks.request([a], (lock) => same(lock.scope, [a]));
    },
  },
  {
    id: 'Q04',
    title: 'an empty scope is refused',
    async run({ extended: locks }) {
      await rejects(locks.request([], () => {}), 'TypeError');
      await rejects(locks.hold([]), 'TypeError');
    },
  },
  {
    id: 'F03',
    title: 'a reserved name is refused anywhere in a scope',
    async run({ extended: locks, name }) {
      await rejects(locks.request([name(), '-b'], () => {}), 'NotSupportedError');
    },
  },
  {
    id: 'Q06 Q07',
    title: 'a scope is granted whole, and keeps its place on each name meanwhile',
    async run({ extended: locks, name, quiet }) {
      const [a, b] = [name('a'), name('b')];
      const first = await locks.hold(a);
      const order = [];
      const both = locks.request([a, b], () => order.push('both'));
      const behind = locks.request(b, () => order.push('behind'));
      await quiet(locks);
      same(order, []);
      first.release();
      await Promise.all([both, behind]);
      same(order, ['both', 'behind']);
    },
  },
  {
    id: 'X36',
    title: 'a shared request overtakes waiting writers only with the option overtake',
    async run({ extended: locks, name }) {
      const reader = await locks.hold(name(), { mode: 'shared' });
      const writer = locks.hold(name());
      equal(await locks.hold(name(), { mode: 'shared', ifAvailable: true }), null);
      const overtaker = await locks.hold(name(), { mode: 'shared', overtake: true });
      overtaker.release();
      reader.release();
      (await writer).release();
      for (const options of [{}, { mode: 'shared', ifAvailable: true }]) {
        await rejects(locks.hold(name(), { overtake: true, ...options }), 'NotSupportedError');
      }
    },
  },
  {
    id: 'decision 5',
    title: 'a steal with a scope ends every lock that it intersects',
    async run({ extended: locks, name }) {
      const [a, b, c] = [name('a'), name('b'), name('c')];
      const victims = [await locks.hold([a, b]), await locks.hold(c)];
      const thief = await locks.hold([b, c], { steal: true });
      ok(await locks.request(a, { ifAvailable: true }, (lock) => lock !== null));
      same(victims.map(({ held }) => held), [false, false]);
      thief.release();
    },
  },
  {
    id: 'X37 F133',
    title: 'partitions are independent',
    async run({ extended: locks, name }) {
      const [one, two] = [locks.partition(name('one')), locks.partition(name('two'))];
      equal(locks.partition(name('one')), one);
      const held = [await one.hold(name()), await two.hold(name()), await locks.hold(name())];
      equal((await one.query()).held.length, 1);
      equal(await one.hold(name(), { ifAvailable: true }), null);
      for (const handle of held) handle.release();
    },
  },
];
