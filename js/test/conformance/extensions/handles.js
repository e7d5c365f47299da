// Locks without a callback: `hold()`, its handles, and their loss.

import { equal, ok, rejects, same } from '../check.js';

export const handles = [
  {
    id: 'decision 1',
    title: 'lock.signal aborts when the lock is lost, with the cause',
    async run({ extended: locks, name }) {
      const held = await locks.hold(name());
      const { signal } = held;
      equal(signal, held.signal);
      equal(signal.aborted, false);
      const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
      const thief = await locks.hold(name(), { steal: true });
      await aborted;
      equal(signal.reason.name, 'AbortError');
      equal(signal.reason.cause, 'Stolen');
      ok(/stole it/.test(signal.reason.message), signal.reason.message);
      same([held.held, held.release(), thief.held, thief.release()], [false, false, true, true]);
    },
  },
  {
    id: 'decision 1',
    title: 'hold() rejects if the lock was lost before the delivery',
    async run({ extended: locks, name }) {
      const victim = locks.hold(name());
      const thief = locks.hold(name(), { steal: true });
      equal((await rejects(victim, 'AbortError')).cause, 'Stolen');
      ok((await thief).release());
    },
  },
  {
    id: 'decision 3',
    title: 'a second release has no effect and returns false',
    async run({ extended: locks, name }) {
      const held = await locks.hold(name());
      const next = locks.hold(name());
      same([held.release(), held.release()], [true, false]);
      ok((await next).held);
      (await next).release();
    },
  },
  {
    id: 'decision 4',
    title: 'forceRelease() releases all holders of a name in one step, and their signals abort',
    async run({ extended: locks, name }) {
      const readers = await Promise.all([1, 2].map(() => locks.hold(name(), { mode: 'shared' })));
      const scoped = await locks.hold([name(), name('other')], { mode: 'shared' });
      const writer = locks.hold(name());
      equal(await locks.forceRelease(name()), 3);
      ok((await writer).held);
      for (const reader of [...readers, scoped]) {
        equal(reader.held, false);
        equal(reader.signal.reason.cause, 'ForceReleased');
      }
      (await writer).release();
      equal(await locks.forceRelease(name()), 0);
    },
  },
  {
    id: 'decision 1',
    title: 'a handle is a disposable Lock, even if its members were replaced',
    async run({ extended: locks, name, available, provider: { Lock, LockHandle } }) {
      const handle = await locks.hold(name());
      ok(handle instanceof Lock && handle instanceof LockHandle);
      handle.release = () => {};
      // Not every browser has these symbols.
      if (Symbol.dispose === undefined) return void delete handle.release;
      handle[Symbol.dispose]();
      equal(handle.held, false);
      const again = await locks.hold(name());
      again.release = () => {};
      await again[Symbol.asyncDispose]();
      equal(await available(name()), true);
    },
  },
  {
    id: 'X22',
    title: 'a handle that is disposed of releases after a throw',
    async run({ extended: locks, name, available }) {
      const careful = async () => {
        const lock = await locks.hold(name());
        try {
          throw new Error('remembered');
        } finally {
          // Not every browser has this symbol.
          if (Symbol.dispose === undefined) lock.release();
          else lock[Symbol.dispose]();
        }
      };
      equal((await rejects(careful(), 'Error')).message, 'remembered');
      equal(await available(name()), true);
    },
  },
  {
    id: 'X28',
    title: 'hold() resolves with null if the lock is not available',
    async run({ extended: locks, name }) {
      const held = await locks.hold(name());
      equal(await locks.hold(name(), { ifAvailable: true }), null);
      held.release();
      equal(await locks.hold(name(), { ifAvailable: true }).then((free) => free.release()), true);
    },
  },
  {
    id: 'F81',
    title: 'a signal aborts every pending hold(), and no granted one',
    async run({ extended: locks, name }) {
      const controller = new AbortController();
      const { signal } = controller;
      const held = await locks.hold(name(), { signal });
      const waiting = [1, 2, 3].map(() => rejects(locks.hold(name(), { signal }), { value: 'enough' }));
      controller.abort('enough');
      await Promise.all(waiting);
      ok(held.release());
    },
  },
];
