// The method query().

import { equal, ok, same } from './check.js';

export const queries = [
  {
    id: 'F110',
    title: 'a snapshot has its own held and pending',
    async run(t) {
      const snapshot = await t.locks.query();
      same(Object.keys(snapshot).sort(), ['held', 'pending']);
      ok(Array.isArray(snapshot.held) && Array.isArray(snapshot.pending));
      same(await t.query(), { held: [], pending: [] });
    },
  },
  {
    id: 'F111',
    title: 'an entry has name, mode and clientId of its own',
    async run(t) {
      const held = await t.hold(t.base, { mode: 'shared' });
      const waiting = t.request(t.base);
      const { held: [a], pending: [b] } = await t.query();
      for (const info of [a, b]) {
        same(Object.keys(info).sort(), ['clientId', 'mode', 'name']);
        equal(info.name, t.base);
        equal(typeof info.clientId, 'string');
        ok(info.clientId !== '');
      }
      same([a.mode, b.mode], ['shared', 'exclusive']);
      held.release();
      await waiting.granted;
      waiting.release();
      await waiting.done;
    },
  },
  {
    id: 'G11',
    title: 'snapshots are ordinary objects and copies',
    async run(t) {
      const held = await t.hold(t.base);
      const snapshot = await t.locks.query();
      for (const object of [snapshot, snapshot.held.find(({ name }) => name === t.base)]) {
        equal(Object.getPrototypeOf(object), Object.prototype);
        ok(object.hasOwnProperty('held') || object.hasOwnProperty('name'));
      }
      held.release();
      await held.done;
      ok(snapshot.held.some(({ name }) => name === t.base), 'the snapshot changed');
      snapshot.held.length = 0;
      ok((await t.locks.query()).held !== snapshot.held);
    },
  },
  {
    id: 'F112',
    title: 'counts of shared held and pending are exact',
    async run(t) {
      const shared = { mode: 'shared' };
      const readers = await Promise.all([1, 2, 3].map(() => t.hold(t.base, shared)));
      const waiting = [{}, shared, shared].map((options) => t.request(t.base, options));
      const { held, pending } = await t.query();
      same([held.length, pending.map(({ mode }) => mode)], [3, ['exclusive', 'shared', 'shared']]);
      for (const one of [...readers, ...waiting]) one.release();
      await Promise.all([...readers, ...waiting].map(({ done }) => done));
    },
  },
  {
    id: 'F113',
    title: 'pending requests of a name are listed in request order',
    async run(t) {
      const held = await t.hold(t.base);
      const modes = ['shared', 'exclusive', 'exclusive', 'shared', 'exclusive'];
      const waiting = modes.map((mode) => t.request(t.base, { mode }));
      same((await t.query()).pending.map(({ mode }) => mode), modes);
      for (const one of [held, ...waiting]) one.release();
      await Promise.all(waiting.map(({ done }) => done));
    },
  },
  {
    id: 'F114',
    title: 'one client has one id, which never changes',
    async run(t) {
      const held = [await t.hold(t.name(' a')), await t.hold(t.name(' b'))];
      const ids = new Set([...(await t.query()).held, ...(await t.query()).held].map(({ clientId }) => clientId));
      equal(ids.size, 1);
      for (const { release, done } of held) {
        release();
        await done;
      }
    },
  },
  {
    id: 'F117',
    title: 'a query sees every request made before it',
    async run(t) {
      const first = t.request(t.base);
      const second = t.request(t.base);
      const { held, pending } = await t.query();
      same([held.length, pending.length], [1, 1]);
      first.release();
      second.release();
      await Promise.all([first.done, second.done]);
    },
  },
  {
    id: 'M5',
    title: 'a query in the same task lists the request before it',
    async run(t) {
      const request = t.request(t.base);
      const { held, pending } = await t.query();
      equal(held.length + pending.length, 1);
      request.release();
      await request.done;
    },
  },
  {
    id: 'S15',
    title: 'held locks are listed in the order of their grants',
    needs: ['ordered'],
    async run(t) {
      const names = [' c', ' a', ' b'].map((suffix) => t.name(suffix));
      const held = [];
      for (const name of names) held.push(await t.hold(name));
      same((await t.query()).held.map(({ name }) => name), names);
      for (const { release } of held) release();
      await Promise.all(held.map(({ done }) => done));
    },
  },
];
