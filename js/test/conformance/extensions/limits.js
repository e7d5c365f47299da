// The option `limit`: semaphores by the rule of all locks.

import { equal, ok, rejects, same } from '../check.js';

/** Holds as many locks as there are options, on one name. */
function holdAll(locks, name, options) {
  return Promise.all(options.map((each) => locks.hold(name, each)));
}

/** Releases a lock, and resolves when all grants that follow are delivered. */
async function release(bench, handle) {
  ok(handle.release());
  await bench.quiet(bench.extended);
}

/** Makes a request, and notes its tag when it is granted. */
function queue(locks, name, options, granted) {
  const handle = locks.hold(name, options);
  handle.then(() => granted.push(options.tag), () => {});
  return handle;
}

export const limits = [
  {
    id: 'L01',
    title: 'as many as the limit hold, and a release grants the head of the queue',
    async run(bench) {
      const { extended: locks, name } = bench;
      const granted = [];
      const [one, two, three] = await holdAll(locks, name(), [{ limit: 3 }, { limit: 3 }, { limit: 3 }]);
      const waiters = ['four', 'five'].map((tag) => queue(locks, name(), { limit: 3, tag }, granted));
      await release(bench, two);
      same(granted, ['four']);
      await release(bench, one);
      same(granted, ['four', 'five']);
      for (const handle of [three, ...(await Promise.all(waiters))]) handle.release();
    },
  },
  {
    id: 'L03',
    title: 'a smaller limit waits until there is one place, and is not overtaken',
    async run(bench) {
      const { extended: locks, name } = bench;
      const granted = [];
      const [one, two, three, four] = await holdAll(locks, name(), Array(4).fill({ limit: 4 }));
      const pair = queue(locks, name(), { limit: 2, tag: 'pair' }, granted);
      const behind = queue(locks, name(), { limit: 4, tag: 'behind' }, granted);
      one.release();
      await release(bench, two);
      same(granted, []);
      await release(bench, three);
      same(granted, ['pair']);
      await release(bench, four);
      same(granted, ['pair', 'behind']);
      (await pair).release();
      (await behind).release();
    },
  },
  {
    id: 'L04',
    title: 'a holder with a limit keeps others out, whatever their limits, across clients',
    needs: ['newClient'],
    async run(bench) {
      const { extended: locks, name } = bench;
      const pair = await locks.hold(name(), { limit: 2 });
      const other = await bench.client();
      const reader = await other.hold(name(), { mode: 'shared' });
      const third = await other.request(name(), { mode: 'shared' });
      same((await bench.query(locks)).pending.map(({ mode }) => mode), ['shared']);
      pair.release();
      equal(await third.granted, 'lock');
      await Promise.all([reader.release(), third.release()]);
    },
  },
  {
    id: 'L05',
    title: 'an exclusive request between limited ones waits for all, and blocks all behind it',
    async run(bench) {
      const { extended: locks, name } = bench;
      const granted = [];
      const [one, two] = await holdAll(locks, name(), [{ limit: 3 }, { limit: 3 }]);
      const writer = queue(locks, name(), { tag: 'writer' }, granted);
      const behind = queue(locks, name(), { limit: 3, tag: 'behind' }, granted);
      await release(bench, one);
      same(granted, []);
      await release(bench, two);
      same(granted, ['writer']);
      await release(bench, await writer);
      same(granted, ['writer', 'behind']);
      (await behind).release();
    },
  },
  {
    id: 'L06',
    title: 'a scope with a limit takes a place on each name while it waits',
    async run(bench) {
      const { extended: locks, name } = bench;
      const [a, b] = [name('a'), name('b')];
      const granted = [];
      const writer = await locks.hold(a);
      const both = queue(locks, [a, b], { limit: 2, tag: 'both' }, granted);
      const alone = await locks.hold(b, { limit: 2 });
      const third = queue(locks, b, { limit: 2, tag: 'third' }, granted);
      await release(bench, writer);
      same(granted, ['both']);
      await release(bench, alone);
      same(granted, ['both', 'third']);
      (await both).release();
      (await third).release();
    },
  },
  {
    id: 'L07',
    title: 'an abort in the middle grants those that fit, in queue order',
    async run(bench) {
      const { extended: locks, name } = bench;
      const granted = [];
      const one = await locks.hold(name(), { limit: 3 });
      const controller = new AbortController();
      const writer = locks.hold(name(), { signal: controller.signal });
      const waiters = ['two', 'three', 'four'].map((tag) => queue(locks, name(), { limit: 3, tag }, granted));
      controller.abort();
      await rejects(writer, 'AbortError');
      await bench.quiet(locks);
      same(granted, ['two', 'three']);
      await rejects(locks.hold(name(), { limit: 3, timeout: 1 }), 'TimeoutError');
      await release(bench, one);
      for (const waiter of waiters) (await waiter).release();
    },
  },
  {
    id: 'L08',
    title: 'ifAvailable with a limit is answered by the rule',
    async run({ extended: locks, name }) {
      const attempt = (limit) => locks.hold(name(), { limit, ifAvailable: true });
      const one = await attempt(2);
      const two = await locks.hold(name(), { limit: 3 });
      equal(await attempt(3), null);
      one.release();
      const again = await attempt(2);
      ok(again.held);
      again.release();
      two.release();
    },
  },
  {
    id: 'L09',
    title: 'a steal with a limit takes all holders, and the queue keeps its order',
    async run(bench) {
      const { extended: locks, name } = bench;
      const granted = [];
      const victims = await holdAll(locks, name(), [{ limit: 2 }, { limit: 2 }]);
      const waiters = ['three', 'four'].map((tag) => queue(locks, name(), { limit: 2, tag }, granted));
      const thief = await locks.hold(name(), { limit: 2, steal: true });
      await bench.quiet(locks);
      same(victims.map(({ held }) => held), [false, false]);
      same(granted, ['three']);
      await release(bench, thief);
      same(granted, ['three', 'four']);
      for (const waiter of waiters) (await waiter).release();
    },
  },
  {
    id: 'L11',
    title: 'query(), inspect(), events and locks show limits above 1, and nothing of them elsewhere',
    async run({ extended: locks, name, query }) {
      const events = locks.events();
      await locks.query();
      const [limited, shared] = await holdAll(locks, name(), [{ limit: 4 }, { mode: 'shared' }]);
      const writer = locks.hold(name(), { limit: 1 });
      same([limited.mode, limited.limit, shared.mode, shared.limit], ['shared', 4, 'shared', undefined]);
      const { held, pending } = await query(locks);
      const { clientId } = locks;
      same(held, [
        { name: name(), mode: 'shared', limit: 4, clientId },
        { name: name(), mode: 'shared', clientId },
      ]);
      same(pending, [{ name: name(), mode: 'exclusive', clientId }]);
      const details = (await locks.inspect()).held.filter(({ scope }) => scope[0] === name());
      same(details.map(({ mode, limit }) => [mode, limit]), [['shared', 4], ['shared', undefined]]);
      let event;
      do event = (await events.next()).value;
      while (event.scope[0] !== name());
      same([event.type, event.mode, event.limit], ['requested', 'shared', 4]);
      await events.return();
      await locks.request(name(), { limit: 4, ifAvailable: true }, (lock) => equal(lock, null));
      limited.release();
      shared.release();
      equal((await writer).limit, undefined);
      (await writer).release();
    },
  },
  {
    id: 'L13',
    title: 'a number that is no limit is a TypeError, as is a limit of an exclusive lock',
    async run({ extended: locks, name, query }) {
      for (const limit of [0, -1, 2.5, NaN, Infinity, 2 ** 28, 2 ** 32, 'many', {}, null, 2n, Symbol('limit')]) {
        await rejects(locks.hold(name(), { limit }), 'TypeError', String(limit));
        await rejects(locks.request(name(), { limit }, () => {}), 'TypeError', String(limit));
      }
      for (const limit of [1, 2]) await rejects(locks.hold(name(), { limit, mode: 'exclusive' }), 'TypeError');
      await rejects(locks.hold(name(), { limit: 2, overtake: true }), 'NotSupportedError');
      same(await query(locks), { held: [], pending: [] });
      for (const limit of ['4', 2 ** 28 - 1]) {
        const handle = await locks.hold(name(), { limit, mode: 'shared' });
        equal(handle.limit, Number(limit));
        handle.release();
      }
    },
  },
];
