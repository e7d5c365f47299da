// requestFlag with a timeout: the first draft.

import { equal, ok, rejects, same } from '../check.js';
import { about, deferred } from './tools.js';

export const flags = [
  {
    id: 'T01 D01 D02 D04',
    title: 'the mode is required',
    async run({ lineage: { requestFlag }, name }) {
      for (const given of [[], [undefined], ['other']]) await rejects(requestFlag(name(), ...given), 'TypeError');
    },
  },
  {
    id: 'T02',
    title: 'a flag has scope, mode, released and waitUntil',
    async run({ lineage: { requestFlag, Flag }, name }) {
      const flag = await requestFlag([name('b'), name('a')], 'shared');
      ok(flag instanceof Flag);
      equal(Object.prototype.toString.call(flag), '[object Flag]');
      same([flag.scope, flag.mode], [[name('a'), name('b')], 'shared']);
      equal(flag.waitUntil(null), flag.released);
      equal(await flag.released, undefined);
      await rejects(flag.waitUntil(null), 'TypeError');
    },
  },
  {
    id: 'T03 T09',
    title: 'a request without a timeout waits, in the usual order',
    async run({ lineage: { requestFlag, explicit }, name, quiet }) {
      const lock = await explicit.requestLock(name());
      const order = [];
      const modes = ['shared', 'exclusive', 'shared'];
      const flags = modes.map((mode, index) => requestFlag(name(), mode).then((flag) => (order.push(index), flag.released)));
      await quiet();
      same(order, []);
      lock.release();
      await Promise.all(flags);
      same(order, [0, 1, 2]);
    },
  },
  {
    id: 'T04 T08 D24 decision 9',
    title: 'a timeout of some milliseconds rejects with TimeoutError, and followers are granted',
    async run({ lineage: { requestFlag, explicit }, name }) {
      const reader = await explicit.requestLock(name(), { mode: 'shared' });
      const start = performance.now();
      const writer = rejects(requestFlag(name(), 'exclusive', { timeout: 50 }), 'TimeoutError');
      const follower = requestFlag(name(), 'shared');
      ok((await writer) instanceof DOMException);
      ok(performance.now() - start > 45, 'not milliseconds');
      await (await follower).released;
      reader.release();
    },
  },
  {
    id: 'T05',
    title: 'a timeout of zero tries once, and is never pending',
    async run(t) {
      const { lineage: { requestFlag }, name } = t;
      const work = deferred();
      const flag = await requestFlag(name(), 'exclusive', { timeout: 0 });
      flag.waitUntil(work.promise);
      const tried = rejects(requestFlag(name(), 'exclusive', { timeout: 0 }), 'TimeoutError');
      same((await about(t, name()))[1], []);
      await tried;
      work.resolve();
      await flag.released;
    },
  },
  {
    id: 'T06',
    title: 'a grant stops the timer: the flag is held after its timeout',
    async run({ lineage: { requestFlag }, name, available }) {
      const flag = await requestFlag(name(), 'exclusive', { timeout: 250 });
      const work = deferred();
      flag.waitUntil(work.promise);
      await new Promise((resolve) => setTimeout(resolve, 300));
      equal(await available(name()), false);
      work.resolve();
      equal(await flag.released, undefined);
      equal(await available(name()), true);
    },
  },
  {
    id: 'T07',
    title: 'a race of timeout and grant has one outcome, and leaks no lock',
    patience: 4,
    async run(t) {
      const { lineage: { requestFlag, explicit }, name } = t;
      const outcomes = { granted: 0, timeout: 0 };
      for (let round = 0; round < 20; round++) {
        const holder = await explicit.requestLock(name());
        const races = Array.from({ length: 50 }, (_, index) =>
          requestFlag(name(), 'shared', { timeout: 1 + (index % 3) }).then(
            () => outcomes.granted++,
            (error) => {
              equal(error.name, 'TimeoutError');
              outcomes.timeout++;
            },
          ),
        );
        setTimeout(() => holder.release(), 1 + (round % 3));
        await Promise.all(races);
      }
      equal(outcomes.granted + outcomes.timeout, 1000);
      equal(await t.locks.request(name(), () => 'free'), 'free');
      same(await about(t, name()), [[], []]);
    },
  },
];
