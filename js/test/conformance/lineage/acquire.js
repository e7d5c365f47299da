// acquire, forceRelease and query: the draft of December 2017.

import { equal, ok, rejects, same, throws } from '../check.js';
import { about, acquired } from './tools.js';

export const acquire = [
  {
    id: 'P01 D01 D02',
    title: 'acquire with and without options resolves with the result of its callback',
    async run({ lineage: { acquire }, name }) {
      equal(await acquire(name(), () => 1), 1);
      equal(await acquire(name(), async () => 2), 2);
      equal(await acquire(name(), { mode: 'shared' }, (lock) => lock.mode), 'shared');
      equal(await acquire(name(), undefined, (lock) => lock.mode), 'exclusive');
      const reason = new Error('thrown');
      await rejects(acquire(name(), () => { throw reason; }), { value: reason });
      for (const wrong of [[], ['a'], ['a', 5], ['a', {}, 5], ['a', 5, () => {}], ['a', { mode: 'x' }, () => {}], ['a', { signal: {} }, () => {}], [Symbol('s'), () => {}]]) {
        await rejects(acquire(...wrong), 'TypeError');
      }
    },
  },
  {
    id: 'P03',
    title: 'the queue is processed before the old promise resolves',
    async run({ lineage: { acquire }, name }) {
      const order = [];
      const first = acquire(name(), () => {}).then(() => order.push('old promise'));
      const second = acquire(name(), () => order.push('next callback'));
      await Promise.all([first, second]);
      same(order, ['next callback', 'old promise']);
    },
  },
  {
    id: 'P04 P05',
    title: 'exclusive needs a free name and no earlier request, shared no exclusive one',
    async run(t) {
      const { lineage: { acquire }, name } = t;
      const reader = acquired(t, name(), { mode: 'shared' });
      await reader.granted;
      equal(await acquire(name(), { mode: 'shared', ifAvailable: true }, (lock) => lock !== null), true);
      const writer = acquired(t, name());
      equal(await acquire(name(), { mode: 'shared', ifAvailable: true }, (lock) => lock), null);
      reader.release();
      await writer.granted;
      equal(await acquire(name(), { ifAvailable: true }, (lock) => lock), null);
      writer.release();
      await writer.done;
    },
  },
  {
    id: 'P06',
    title: 'unrelated names are granted in the order of arrival',
    async run(t) {
      const { lineage: { acquire }, name } = t;
      const held = acquired(t, name('a'));
      await held.granted;
      const order = [];
      const blocked = acquire(name('a'), () => order.push('a'));
      await Promise.all([acquire(name('b'), () => order.push('b')), acquire(name('c'), () => order.push('c'))]);
      same(order, ['b', 'c']);
      held.release();
      await blocked;
    },
  },
  {
    id: 'P07',
    title: 'query returns names and modes alone, held locks in grant order',
    async run(t) {
      const [a, b] = [t.name('a'), t.name('b')];
      const held = [acquired(t, b), acquired(t, a, { mode: 'shared' })];
      await Promise.all(held.map(({ granted }) => granted));
      const waiting = acquired(t, b);
      const snapshot = await t.lineage.query();
      const own = (rows) => rows.filter(({ name }) => [a, b].includes(name));
      same(own(snapshot.held), [{ name: b, mode: 'exclusive' }, { name: a, mode: 'shared' }]);
      same(own(snapshot.pending), [{ name: b, mode: 'exclusive' }]);
      for (const one of [...held, waiting]) one.release();
      await waiting.done;
    },
  },
  {
    id: 'P08',
    title: 'a lock has name and mode, and no other member',
    async run({ lineage: { acquire }, name }) {
      const lock = await acquire(name(), { mode: 'shared' }, (given) => given);
      same([lock.name, lock.mode], [name(), 'shared']);
      const members = [];
      for (let object = lock; object !== Object.prototype; object = Object.getPrototypeOf(object)) members.push(...Reflect.ownKeys(object).map(String));
      same(members.sort(), ['Symbol(Symbol.toStringTag)', 'constructor', 'mode', 'name']);
    },
  },
  {
    id: 'P09 decision 10',
    title: 'a request does not steal by default',
    async run(t) {
      const held = acquired(t, t.name());
      await held.granted;
      const waiting = acquired(t, t.name());
      same(await about(t, t.name()), [[`exclusive ${t.name()}`], [`exclusive ${t.name()}`]]);
      held.release('kept');
      equal(await held.done, 'kept');
      await waiting.granted;
      waiting.release();
    },
  },
  {
    id: 'P10 P11 P12',
    title: 'a steal ends holders and waiters, and is granted at once',
    async run(t) {
      const held = acquired(t, t.name());
      await held.granted;
      const queued = [acquired(t, t.name()), acquired(t, t.name(), { mode: 'shared' })];
      const thief = acquired(t, t.name(), { steal: true });
      for (const { done } of [held, ...queued]) equal((await rejects(done, 'AbortError')).cause, 'Stolen');
      await thief.granted;
      same(await about(t, t.name()), [[`exclusive ${t.name()}`], []]);
      thief.release();
      await thief.done;
    },
  },
  {
    id: 'P13',
    title: 'options may be combined: a shared steal, a conditional one, a signal with either',
    async run(t) {
      const { lineage: { acquire }, name } = t;
      const held = acquired(t, name());
      await held.granted;
      const { signal } = new AbortController();
      equal(await acquire(name(), { steal: true, mode: 'shared' }, (lock) => lock.mode), 'shared');
      await rejects(held.done, 'AbortError');
      const again = acquired(t, name());
      await again.granted;
      equal(await acquire(name(), { steal: true, ifAvailable: true, signal }, (lock) => lock !== null), true);
      await rejects(again.done, 'AbortError');
      equal(await acquire(name(), { ifAvailable: true, signal }, (lock) => lock !== null), true);
    },
  },
  {
    id: 'P14',
    title: 'an unavailable request calls back with null, once, and is not queued',
    async run(t) {
      const { lineage: { acquire }, name } = t;
      const held = acquired(t, name());
      await held.granted;
      const given = [];
      equal(await acquire(name(), { ifAvailable: true }, (lock) => (given.push(lock), 'missed')), 'missed');
      same((await about(t, name()))[1], []);
      held.release();
      await held.done;
      await t.quiet();
      same(given, [null]);
    },
  },
  {
    id: 'P15',
    title: 'an abort rejects with a new AbortError, also after the grant, and then the lock stays held',
    async run(t) {
      const { name } = t;
      const controller = new AbortController();
      const { signal } = controller;
      const held = acquired(t, name(), { signal });
      await held.granted;
      const waiting = acquired(t, name(), { signal });
      const next = acquired(t, name());
      const reason = new Error('the reason of the signal');
      controller.abort(reason);
      for (const { done } of [held, waiting]) ok((await rejects(done, 'AbortError')) !== reason);
      equal(await t.available(name()), false);
      same(await about(t, name()), [[`exclusive ${name()}`], [`exclusive ${name()}`]]);
      held.release();
      await next.granted;
      next.release();
      await next.done;
    },
  },
  {
    id: 'P15',
    title: 'a signal that was aborted before the call is ignored',
    async run({ lineage: { acquire }, name }) {
      equal(await acquire(name(), { signal: AbortSignal.abort() }, () => 'granted'), 'granted');
    },
  },
  {
    id: 'P16',
    title: 'forceRelease releases all holders in one step, rejects their promises, and keeps the queue',
    async run(t) {
      const { name } = t;
      const readers = [acquired(t, name(), { mode: 'shared' }), acquired(t, name(), { mode: 'shared' })];
      await Promise.all(readers.map(({ granted }) => granted));
      const writer = acquired(t, name());
      equal(t.lineage.forceRelease(name()), undefined);
      await writer.granted;
      for (const { done } of readers) equal((await rejects(done, 'AbortError')).cause, 'ForceReleased');
      writer.release();
      await writer.done;
      equal(t.lineage.forceRelease(name()), undefined);
      throws(() => t.lineage.forceRelease(), TypeError);
      throws(() => t.lineage.forceRelease(Symbol('s')), TypeError);
    },
  },
  {
    id: 'P17 Q21 X38',
    title: 'the end of a client releases the locks of its acquire, requestLock and requestFlag',
    needs: ['newClient'],
    async run(t) {
      const { lineage: { acquire, explicit }, name } = t;
      const other = await t.client();
      await other.holdOlderLocks([name('a')], [name('b'), name('c')], [name('d')]);
      same(await Promise.all(['a', 'b', 'c', 'd'].map((one) => t.available(name(one)))), [false, false, false, false]);
      const first = acquire(name('a'), () => 'granted');
      const second = explicit.requestLock([name('b'), name('d')]);
      await other.kill();
      equal(await first, 'granted');
      equal((await second).release(), true);
    },
  },
  {
    id: 'P18',
    title: 'names that start with a hyphen are allowed',
    async run({ lineage: { acquire, explicit }, name }) {
      const reserved = `-${name()}`;
      equal(await acquire(reserved, (lock) => lock.name), reserved);
      (await explicit.requestLock([`${reserved} b`, `${reserved} c`])).release();
    },
  },
  {
    id: 'P01',
    title: 'installLineage defines every name where its document has it',
    needs: ['installed'],
    async run({ name, provider: { installed } }) {
      const { navigator, requestFlag, requestLock } = installed;
      equal(await navigator.locks.acquire(name(), async (lock) => lock.name), name());
      equal(navigator.locks.forceRelease(name()), undefined);
      const lock = await requestLock(name());
      equal(await lock.waitUntil(Promise.resolve()), undefined);
      const flag = await requestFlag([name()], 'shared', { timeout: 60_000 });
      same(flag.scope, [name()]);
      await flag.released;
    },
  },
];
