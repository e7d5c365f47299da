// The explainer: its example, its three release styles, the adapters between them.

import { equal, rejects, same } from '../check.js';
import { autoFromExplicit, explicitFromAuto, explicitFromScoped, scopedFromExplicit } from './adapters.js';
import { deferred } from './tools.js';

/** Checks an adapter to the explicit style: its lock is held until `release()` is called. */
async function tryExplicit({ name, available, quiet }, requestExplicitLock) {
  const lock = await requestExplicitLock(name());
  await quiet();
  equal(await available(name()), false);
  lock.release();
  equal(await lock.released, undefined);
  equal(await available(name()), true);
  // The options of the model below are passed on.
  const reader = await requestExplicitLock([name('a'), name('b')], { mode: 'shared' });
  equal(await available(name('b'), 'shared'), true);
  equal(await available(name('b')), false);
  reader.release();
  await reader.released;
}

export const explainer = [
  {
    id: 'X01 X02 X03 X04 X05',
    title: 'the example of the explainer',
    async run({ lineage: { explicit }, name, quiet }) {
      const [a, b, c] = [name('a'), name('b'), name('c')];
      const granted = new Map();
      const request = (number, scope, mode) => explicit.requestLock(scope, { mode }).then((lock) => granted.set(number, lock));
      const all = [request(1, a, 'exclusive'), request(2, b, 'shared'), request(3, b, 'shared'), request(4, [a, b], 'exclusive'), request(5, b, 'shared'), request(6, c, 'exclusive')];
      const now = async () => {
        await quiet();
        return [...granted.keys()].sort();
      };
      same(await now(), [1, 2, 3, 6]);
      granted.get(1).release();
      same(await now(), [1, 2, 3, 6]);
      granted.get(2).release();
      same(await now(), [1, 2, 3, 6]);
      granted.get(3).release();
      same(await now(), [1, 2, 3, 4, 6]);
      granted.get(4).release();
      same(await now(), [1, 2, 3, 4, 5, 6]);
      await Promise.all(all);
      granted.get(5).release();
      granted.get(6).release();
    },
  },
  {
    id: 'X23',
    title: 'proposal 1, auto release: held during the write and not after',
    async run({ lineage: { auto: { requestLock } }, name, available }) {
      let during;
      const written = deferred();
      const async_write_func = async () => {
        during = await available(name());
        written.resolve();
      };
      async function get_lock_then_write() {
        const lock = await requestLock(name());
        lock.waitUntil(async_write_func());
        return lock.released;
      }
      const done = get_lock_then_write();
      await written.promise;
      await done;
      equal(during, false);
      equal(await available(name()), true);
    },
  },
  {
    id: 'X21',
    title: 'proposal 2, explicit release: held during the write and not after',
    async run({ lineage: { explicit: { requestLock } }, name, available }) {
      let during;
      const async_write_func = async () => {
        during = await available(name());
      };
      async function get_lock_then_write() {
        const lock = await requestLock(name());
        await async_write_func();
        return lock.release();
      }
      equal(await get_lock_then_write(), true);
      equal(during, false);
      equal(await available(name()), true);
    },
  },
  {
    id: 'X24',
    title: 'proposal 3, scoped release: held during the read and not after',
    async run({ lineage: { scoped: { requestLock } }, name, available }) {
      let during;
      const async_read_func = async () => {
        during = [await available(name()), await available(name(), 'shared')];
      };
      async function get_lock_then_read() {
        await requestLock(name(), async (lock) => {
          equal(lock.mode, 'shared');
          await async_read_func();
        }, { mode: 'shared' });
      }
      await get_lock_then_read();
      same(during, [false, true]);
      equal(await available(name()), true);
    },
  },
  {
    id: 'X21 X22',
    title: 'an explicit lock is held until it is released, also after a throw; a second release has no effect',
    async run({ lineage: { explicit }, name, available, quiet }) {
      let kept;
      const careless = async () => {
        kept = await explicit.requestLock(name());
        throw new Error('forgot');
      };
      await rejects(careless(), 'Error');
      await quiet();
      equal(await available(name()), false);
      same([kept.release(), kept.release()], [true, false]);
      equal(await kept.released, undefined);
    },
  },
  {
    id: 'X24 D02',
    title: 'a lock with a callback is held while the callback runs, and resolves with its result',
    async run({ lineage: { requestLock, Lock }, name, available, quiet }) {
      const result = await requestLock(name(), async (lock) => {
        same([lock instanceof Lock, lock.scope, lock.mode], [true, [name()], 'shared']);
        await quiet();
        equal(await available(name()), false);
        return 'result';
      }, { mode: 'shared' });
      equal(result, 'result');
      equal(await available(name()), true);
      const reason = new Error('thrown');
      // A rejected promise of the lock ends the lock, and not the callback.
      const early = await requestLock(name(), async (lock) => {
        await rejects(lock.waitUntil(Promise.reject(reason)), { value: reason });
        return [await available(name()), lock.release()];
      });
      same(early, [true, false]);
      await rejects(requestLock(name(), () => { throw reason; }), { value: reason });
      equal(await available(name()), true);
      const error = await rejects(requestLock(name(), () => {}, { signal: AbortSignal.abort(reason) }), 'AbortError');
      equal(error.cause, reason);
    },
  },
  {
    id: 'X25',
    title: 'explicit release in terms of auto-release, as the explainer writes it',
    run: (t) => tryExplicit(t, explicitFromAuto(t.lineage.auto)),
  },
  {
    id: 'X25',
    title: 'explicit release in terms of scoped release, as the explainer writes it',
    run: (t) => tryExplicit(t, explicitFromScoped(t.lineage.scoped)),
  },
  {
    id: 'X25',
    title: 'requestLock has both forms, chosen by its arguments',
    async run(t) {
      await tryExplicit(t, explicitFromAuto(t.lineage));
      await tryExplicit(t, explicitFromScoped(t.lineage));
    },
  },
  {
    id: 'X25',
    title: 'auto-release in terms of explicit release, as the explainer writes it',
    async run({ lineage, name, available, quiet }) {
      const requestAutoReleaseLock = autoFromExplicit(lineage.explicit);
      const work = deferred();
      const lock = await requestAutoReleaseLock(name());
      lock.waitUntil(work.promise);
      await quiet();
      equal(await available(name()), false);
      work.resolve();
      await lock.released;
      equal(await available(name()), true);
      await (await requestAutoReleaseLock(name())).released;
      const failing = await requestAutoReleaseLock(name());
      failing.waitUntil(Promise.reject(new Error('failed')));
      await failing.released;
      equal(await available(name()), true);
    },
  },
  {
    id: 'X25',
    title: 'scoped release in terms of explicit release, as the explainer writes it',
    async run({ lineage, name, available }) {
      const requestScopedLock = scopedFromExplicit(lineage.explicit);
      let during;
      await requestScopedLock(name(), async () => { during = await available(name()); });
      equal(during, false);
      equal(await available(name()), true);
      await rejects(requestScopedLock(name(), () => { throw new Error('thrown'); }), 'Error');
      equal(await available(name()), true);
    },
  },
  {
    id: 'X25',
    title: 'an adapter over an adapter: scoped from explicit from auto',
    async run({ lineage, name, available }) {
      const requestScopedLock = scopedFromExplicit({ requestLock: explicitFromAuto(lineage.auto) });
      let during;
      await requestScopedLock(name(), async () => { during = await available(name()); });
      equal(during, false);
      // The promise of the adapter resolves one microtask before the release.
      await lineage.auto.requestLock(name());
    },
  },
  {
    id: 'X26 X28 D04',
    title: 'exclusive and waiting are the defaults; an unavailable request gets null in every style',
    async run({ lineage: { auto, explicit, scoped }, name }) {
      const lock = await explicit.requestLock(name());
      equal(lock.mode, 'exclusive');
      const options = { ifAvailable: true };
      equal(await auto.requestLock(name(), options), null);
      equal(await explicit.requestLock(name(), options), null);
      equal(await scoped.requestLock(name(), (given) => given, options), null);
      const waiting = auto.requestLock(name());
      lock.release();
      equal((await waiting).mode, 'exclusive');
    },
  },
  {
    id: 'X27',
    title: 'a timer on a signal ends a wait with AbortError, as the explainer writes it',
    async run({ lineage: { explicit, scoped: { requestLock } }, name }) {
      const held = await explicit.requestLock(name());
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 20);
      let seen;
      try {
        await requestLock(name(), async () => {
          seen = 'granted';
        }, { signal: controller.signal });
      } catch (ex) {
        seen = ex.name;
      }
      equal(seen, 'AbortError');
      held.release();
    },
  },
  {
    id: 'X33 X39',
    title: 'transactions on locks: readers of a store overlap, writers take turns in the order of creation',
    async run({ lineage: { scoped }, name, quiet }) {
      const log = [];
      let readers = 0;
      let overlapped = false;
      const run = (mode, stores, work) => scoped.requestLock(stores.map((store) => `${name()}/${store}`), work, { mode });
      const read = (label) => async () => {
        readers++;
        overlapped ||= readers > 1;
        await quiet();
        log.push(label);
        readers--;
      };
      const write = (label) => async () => {
        equal(readers, 0);
        await quiet();
        log.push(label);
      };
      await Promise.all([
        run('shared', ['a'], read('r1')),
        run('shared', ['a', 'b'], read('r2')),
        run('exclusive', ['b'], write('w1')),
        run('exclusive', ['a', 'b'], write('w2')),
        run('shared', ['b'], read('r3')),
      ]);
      equal(overlapped, true);
      same(log.slice(0, 2).sort(), ['r1', 'r2']);
      same(log.slice(2), ['w1', 'w2', 'r3']);
    },
  },
  {
    id: 'X35',
    title: 'a reader that comes after a waiting writer waits',
    async run({ lineage: { auto, explicit }, name }) {
      const reader = await explicit.requestLock(name(), { mode: 'shared' });
      const writer = explicit.requestLock(name());
      equal(await auto.requestLock(name(), { mode: 'shared', ifAvailable: true }), null);
      reader.release();
      (await writer).release();
    },
  },
];
