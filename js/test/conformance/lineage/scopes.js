// requestLock with scopes and waitUntil: the second draft.

import { equal, ok, rejects, same } from '../check.js';
import { about, deferred } from './tools.js';

export const scopes = [
  {
    id: 'Q01',
    title: 'one name and a list of it are the same scope',
    async run({ lineage: { explicit, auto }, name }) {
      const lock = await explicit.requestLock(name());
      same(lock.scope, [name()]);
      equal(await auto.requestLock([name()], { ifAvailable: true }), null);
      lock.release();
    },
  },
  {
    id: 'Q02 Q03',
    title: 'a scope is a frozen sorted set, by code units',
    async run({ lineage: { auto }, name }) {
      const lock = await auto.requestLock([name('b'), name('a'), name('b')]);
      same(lock.scope, [name('a'), name('b')]);
      ok(Object.isFrozen(lock.scope));
      equal(lock.scope, lock.scope);
      await lock.released;
      const other = await auto.requestLock(new Set([name('\uFF5E'), name('\u{10000}')]));
      same(other.scope, [name('\u{10000}'), name('\uFF5E')]);
      await other.released;
    },
  },
  {
    id: 'Q04',
    title: 'an empty scope rejects with TypeError',
    async run({ lineage: { auto, explicit, scoped, requestFlag } }) {
      await rejects(auto.requestLock([]), 'TypeError');
      await rejects(explicit.requestLock([]), 'TypeError');
      await rejects(scoped.requestLock([], () => {}), 'TypeError');
      await rejects(requestFlag([], 'shared'), 'TypeError');
    },
  },
  {
    id: 'Q05',
    title: 'scopes conflict by their intersection',
    async run(t) {
      const { lineage: { explicit }, name, available } = t;
      const [a, b, c] = [name('a'), name('b'), name('c')];
      const lock = await explicit.requestLock([a, b]);
      const waiting = explicit.requestLock([b, c], { mode: 'shared' });
      await t.quiet();
      same(await about(t, b, c), [[`exclusive ${b}`], [`shared ${b}`, `shared ${c}`]]);
      equal(await available(c), false);
      equal(await available(c, 'shared'), true);
      lock.release();
      (await waiting).release();
    },
  },
  {
    id: 'Q06 Q07 Q10',
    title: 'a scope waits as a whole, reserves its place, and frees it when aborted',
    async run(t) {
      const { lineage: { auto, explicit }, name } = t;
      const [a, b] = [name('a'), name('b')];
      const first = await explicit.requestLock(a);
      const controller = new AbortController();
      const both = rejects(auto.requestLock([a, b], { signal: controller.signal }), 'AbortError');
      const behind = [explicit.requestLock(b), explicit.requestLock(b, { mode: 'shared' })];
      await t.quiet();
      same((await about(t, b))[0], []);
      controller.abort();
      await both;
      (await behind[0]).release();
      (await behind[1]).release();
      first.release();
    },
  },
  {
    id: 'Q08',
    title: 'shared passes an earlier waiting shared, but no exclusive',
    async run({ lineage: { auto, explicit }, name }) {
      const [a, b] = [name('a'), name('b')];
      const first = await explicit.requestLock(a);
      const waiting = explicit.requestLock([a, b], { mode: 'shared' });
      (await explicit.requestLock(b, { mode: 'shared' })).release();
      const writer = explicit.requestLock(b);
      equal(await auto.requestLock(b, { mode: 'shared', ifAvailable: true }), null);
      first.release();
      (await waiting).release();
      (await writer).release();
    },
  },
  {
    id: 'Q09',
    title: 'scopes in any order do not deadlock',
    patience: 4,
    async run({ lineage: { auto }, name }) {
      const [a, b] = [name('a'), name('b')];
      let count = 0;
      async function loop(scope) {
        for (let round = 0; round < 50; round++) {
          const lock = await auto.requestLock(scope);
          await lock.waitUntil(Promise.resolve(count++));
        }
      }
      await Promise.all([loop([a, b]), loop([b, a]), loop([a]), loop([b])]);
      equal(count, 200);
    },
  },
  {
    id: 'Q11 Q12 Q19 X23 D01 D14',
    title: 'the promise resolves with a lock, which releases itself',
    async run({ lineage: { auto, Lock }, name, available }) {
      const lock = await auto.requestLock(name());
      ok(lock instanceof Lock);
      equal(Object.prototype.toString.call(lock), '[object Lock]');
      equal(lock.mode, 'exclusive');
      equal(await lock.released, undefined);
      equal(await available(name()), true);
    },
  },
  {
    id: 'Q12',
    title: 'a lock releases itself even if its promise is ignored',
    async run({ lineage: { auto }, name }) {
      auto.requestLock(name());
      const next = await auto.requestLock(name());
      ok(next);
    },
  },
  {
    id: 'Q13 X23',
    title: 'a caller that awaits the lock can always extend it',
    async run({ lineage: { auto, requestFlag }, name }) {
      for (let round = 0; round < 100; round++) {
        const lock = await auto.requestLock(name());
        await lock.waitUntil(null);
        await auto.requestLock(name()).then((other) => other.waitUntil(null));
        const flag = await requestFlag(name(), 'exclusive');
        await flag.waitUntil(null);
      }
    },
  },
  {
    id: 'Q14 Q15 X23',
    title: 'a lock is held until all its promises fulfil, also those added meanwhile',
    async run({ lineage: { auto }, name, available, quiet }) {
      const [first, second] = [deferred(), deferred()];
      const lock = await auto.requestLock(name());
      lock.waitUntil(first.promise);
      await quiet();
      lock.waitUntil(second.promise);
      first.resolve();
      await quiet();
      equal(await available(name()), false);
      second.resolve();
      await lock.released;
      equal(await available(name()), true);
    },
  },
  {
    id: 'Q16 X23',
    title: 'a rejection releases the lock at once, and rejects released',
    async run({ lineage: { auto, explicit }, name }) {
      const lock = await auto.requestLock(name());
      const [pending, failing] = [deferred(), deferred()];
      lock.waitUntil(pending.promise).catch(() => {});
      lock.waitUntil(failing.promise).catch(() => {});
      const next = explicit.requestLock(name());
      const reason = new Error('failed');
      failing.reject(reason);
      await rejects(lock.released, { value: reason });
      (await next).release();
      pending.resolve();
    },
  },
  {
    id: 'Q17 Q18',
    title: 'waitUntil returns released, and rejects with TypeError after the release',
    async run({ lineage: { auto }, name }) {
      const lock = await auto.requestLock(name());
      equal(lock.waitUntil(Promise.resolve()), lock.released);
      await lock.released;
      await rejects(lock.waitUntil(Promise.resolve()), 'TypeError');
    },
  },
  {
    id: 'Q20',
    title: 'an abort ends a pending request, and is ignored after the grant',
    async run({ lineage: { auto, explicit, scoped }, name, available }) {
      const controller = new AbortController();
      const { signal } = controller;
      const lock = await explicit.requestLock(name(), { signal });
      const waiting = [
        rejects(auto.requestLock(name(), { signal }), 'AbortError'),
        rejects(explicit.requestLock(name(), { signal }), 'AbortError'),
        rejects(scoped.requestLock(name(), () => {}, { signal }), 'AbortError'),
      ];
      const reason = new Error('the reason of the signal');
      controller.abort(reason);
      // The draft has a new AbortError, whose cause is the reason.
      for (const error of await Promise.all(waiting)) same([error instanceof DOMException, error.cause === reason], [true, true]);
      equal((await rejects(auto.requestLock(name(), { signal }), 'AbortError')).cause, reason);
      equal(await available(name()), false);
      equal(lock.release(), true);
    },
  },
  {
    id: 'Q19 X26',
    title: 'options of other documents are not read',
    async run({ lineage: { auto, explicit, scoped, requestFlag }, name, quiet }) {
      const held = await explicit.requestLock(name());
      const read = [];
      const steals = { steal: true, overtake: true, timeout: 0, tag: 'ignored' };
      const options = () => new Proxy(steals, { get: (target, member) => (read.push(member), target[member]) });
      const granted = [];
      const waiting = [
        auto.requestLock(name(), options()).then(() => granted.push('auto')),
        explicit.requestLock(name(), options()).then((lock) => (granted.push('explicit'), lock.release())),
        scoped.requestLock(name(), () => granted.push('scoped'), options()),
      ];
      await quiet();
      same(granted, []);
      same(read, [...Array(3)].flatMap(() => ['ifAvailable', 'mode', 'signal']));
      held.release();
      await Promise.all(waiting);
      same(granted, ['auto', 'explicit', 'scoped']);
      read.length = 0;
      await (await requestFlag(name(), 'shared', options())).released;
      same(read, ['timeout']);
      for (const wrong of [5, 'exclusive', true]) {
        await rejects(auto.requestLock(name(), wrong), 'TypeError');
        await rejects(requestFlag(name(), 'shared', wrong), 'TypeError');
      }
      await rejects(auto.requestLock(name(), { mode: 'readonly' }), 'TypeError');
      await rejects(scoped.requestLock(name(), {}), 'TypeError');
    },
  },
];
