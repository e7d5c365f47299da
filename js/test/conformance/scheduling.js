// The order of grants on one name, and independence of names.

import { equal, ok, same } from './check.js';

const shared = { mode: 'shared' };

export const scheduling = [
  {
    id: 'F60',
    title: 'exclusive requests are granted in order',
    async run({ locks, base }) {
      const order = [];
      await Promise.all([1, 2, 3, 4, 5].map((number) => locks.request(base, () => order.push(number))));
      same(order, [1, 2, 3, 4, 5]);
    },
  },
  {
    id: 'F61',
    title: 'shared locks are held concurrently',
    async run(t) {
      const held = [await t.hold(t.base, shared), await t.hold(t.base, shared)];
      same((await t.query()).held.map(({ mode }) => mode), ['shared', 'shared']);
      await releaseAll(held);
    },
  },
  {
    id: 'F62',
    title: 'shared excludes exclusive, exclusive excludes both',
    async run(t) {
      for (const [mode, expected] of [['shared', [false, true]], ['exclusive', [false, false]]]) {
        const held = await t.hold(t.base, { mode });
        same([await t.available(t.base, 'exclusive'), await t.available(t.base, 'shared')], expected);
        await releaseAll([held]);
      }
    },
  },
  {
    id: 'F63',
    title: 'an exclusive request waits for every shared holder',
    async run(t) {
      const held = await Promise.all([1, 2, 3].map(() => t.hold(t.base, shared)));
      const writer = t.request(t.base);
      for (const one of held) {
        await t.quiet();
        equal(writer.lock, undefined);
        await releaseAll([one]);
      }
      await writer.granted;
      await releaseAll([writer]);
    },
  },
  {
    id: 'F64',
    title: 'a reader does not pass a waiting writer',
    async run(t) {
      const first = await t.hold(t.base, shared);
      const writer = t.request(t.base);
      const second = t.request(t.base, shared);
      await t.quiet();
      equal(second.lock, undefined);
      await releaseAll([first]);
      await writer.granted;
      await t.quiet();
      equal(second.lock, undefined);
      await releaseAll([writer]);
      await second.granted;
      await releaseAll([second]);
    },
  },
  {
    id: 'F65',
    title: "a writer's release grants all readers up to the next writer",
    async run(t) {
      const writer = await t.hold(t.base);
      const [r1, r2, w, r3] = [shared, shared, {}, shared].map((options) => t.request(t.base, options));
      await releaseAll([writer]);
      await Promise.all([r1.granted, r2.granted]);
      await t.quiet();
      same([w.lock, r3.lock], [undefined, undefined]);
      const { held, pending } = await t.query();
      same([held.map(({ mode }) => mode), pending.map(({ mode }) => mode)], [['shared', 'shared'], ['exclusive', 'shared']]);
      await releaseAll([r1, r2]);
      await w.granted;
      await releaseAll([w]);
      await r3.granted;
      await releaseAll([r3]);
    },
  },
  {
    id: 'F66',
    title: 'names do not affect each other',
    async run(t) {
      const held = await t.hold(t.name(' a'));
      const blocked = t.request(t.name(' a'));
      equal(await t.locks.request(t.name(' b'), () => 'b'), 'b');
      equal(blocked.lock, undefined);
      await releaseAll([held]);
      await blocked.granted;
      await releaseAll([blocked]);
    },
  },
  {
    id: 'F67',
    title: 'locks are not re-entrant',
    async run(t) {
      const held = await t.hold(t.base);
      ok(!(await t.available(t.base)));
      await releaseAll([held]);
    },
  },
  {
    id: 'F69',
    title: 'ten thousand other locks do not affect a request',
    patience: 12,
    async run(t) {
      const others = await Promise.all(Array.from({ length: 10_000 }, (_, index) => t.hold(t.name(` ${index}`))));
      for (let count = 0; count < 100; count++) equal(await t.locks.request(t.name(' hot'), () => count), count);
      ok(!(await t.available(t.name(' 5000'))));
      await releaseAll(others);
      ok(await t.available(t.name(' 5000')));
    },
  },
  {
    id: 'F130',
    title: 'a deadlock blocks only its own requests',
    async run(t) {
      const [a, b] = [await t.hold(t.name(' A')), await t.hold(t.name(' B'))];
      const [wantsB, wantsA] = [t.request(t.name(' B')), t.request(t.name(' A'))];
      await t.quiet();
      same([wantsA.lock, wantsB.lock], [undefined, undefined]);
      equal(await t.locks.request(t.name(' C'), () => 'C'), 'C');
      await releaseAll([a]);
      await wantsA.granted;
      await releaseAll([b, wantsA]);
      await wantsB.granted;
      await releaseAll([wantsB]);
    },
  },
  {
    id: 'F131',
    title: 'a thousand random pairs of locks in a strict order do not deadlock',
    patience: 12,
    async run(t) {
      const { locks } = t;
      function requestMultiple(names, callback) {
        const inner = [...names].sort();
        const next = () => (inner.length === 0 ? callback() : locks.request(inner.shift(), next));
        return next();
      }
      let seed = 12345;
      const random = (limit) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % limit;
      let ran = 0;
      const pairs = Array.from({ length: 1000 }, () => {
        const first = random(10);
        return [first, (first + 1 + random(9)) % 10].map((number) => t.name(` ${number}`));
      });
      await Promise.all(pairs.map((pair) => requestMultiple(pair, () => ran++)));
      equal(ran, 1000);
    },
  },
];

async function releaseAll(held) {
  for (const { release } of held) release();
  await Promise.all(held.map(({ done }) => done));
}
