// Names: any JavaScript string, exactly.

import { equal, ok, rejects } from './check.js';

export const names = [
  {
    id: 'F01',
    title: 'a name comes back code unit for code unit',
    async run({ locks }) {
      const tricky = ['', 'abc\0def', '\uD800', '\uDC00', '\uDC00\uD800', '\uFFFF', '\u{10000}', 'x'.repeat(127), 'y'.repeat(128), 'z'.repeat(4000)];
      for (const name of tricky) {
        await locks.request(name, async (lock) => {
          equal(lock.name, name);
          const { held } = await locks.query();
          ok(held.some((info) => info.name === name), `the query mangles ${JSON.stringify(name)}`);
        });
      }
    },
  },
  {
    id: 'F02',
    title: 'a lone surrogate is not the replacement character',
    async run(t) {
      const held = await t.hold(t.name('\uD800'));
      ok(await t.available(t.name('\uFFFD')));
      ok(!(await t.available(t.name('\uD800'))));
      held.release();
      await held.done;
    },
  },
  {
    id: 'F03',
    title: 'names that start with a hyphen are reserved',
    async run({ locks }) {
      for (const name of ['-', '-foo']) await rejects(locks.request(name, () => {}), 'NotSupportedError', name);
      equal(await locks.request('x-anything', (lock) => lock.name), 'x-anything');
    },
  },
  {
    id: 'F04',
    title: 'only U+002D, and only as the first code unit, is reserved',
    async run({ locks }) {
      for (const name of ['\u2010a', ' -a', '\u2212a']) equal(await locks.request(name, (lock) => lock.name), name);
    },
  },
  {
    id: 'F05',
    title: 'a name is converted to a string',
    async run({ locks }) {
      equal(await locks.request(1, (lock) => lock.name), '1');
      equal(await locks.request(undefined, (lock) => lock.name), 'undefined');
      equal(await locks.request({ toString: () => 'from an object' }, (lock) => lock.name), 'from an object');
      await rejects(locks.request(Symbol('no'), () => {}), 'TypeError');
      const error = new Error('from toString');
      await rejects(locks.request({ toString() { throw error; } }, () => {}), { value: error });
    },
  },
  {
    id: 'F06',
    title: 'names are neither normalised nor folded',
    async run(t) {
      const held = [await t.hold(t.name('\u00e9')), await t.hold(t.name('A'))];
      ok(await t.available(t.name('e\u0301')));
      ok(await t.available(t.name('a')));
      for (const { release, done } of held) {
        release();
        await done;
      }
    },
  },
  {
    id: 'G17',
    title: 'names that look alike are distinct',
    async run(t) {
      const alike = ['\u212b', '\u00c5', 'A\u030a', '\ufb01', 'fi', 'a\u200b', 'a'];
      const held = await Promise.all(alike.map((name) => t.hold(t.name(name))));
      for (const { release } of held) release();
      await Promise.all(held.map(({ done }) => done));
    },
  },
];
