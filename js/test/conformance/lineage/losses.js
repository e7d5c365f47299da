// Lost locks of the older drafts: each API reports the cause, and no rejection is unhandled.

import { equal, rejects, same } from '../check.js';
import { deferred, watchUnhandled } from './tools.js';

/** The ways to lose a lock, by cause. */
const ways = {
  Stolen: ({ locks }, name) => locks.request(name, { steal: true }, () => {}),
  ForceReleased: ({ extended }, name) => extended.forceRelease(name),
};

function lossCases(cause) {
  return [
    {
      id: 'X24',
      title: `a lock with a callback that is ${cause}: its promise and released reject, its signal aborts`,
      async run(t) {
        const { name, lineage: { scoped } } = t;
        const [work, granted] = [deferred(), deferred()];
        const lost = rejects(scoped.requestLock(name(), (lock) => {
          granted.resolve(lock);
          return work.promise;
        }), 'AbortError');
        const lock = await granted.promise;
        const { signal } = lock;
        const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
        await ways[cause](t, name());
        const error = await lost;
        equal(error.cause, cause);
        await rejects(lock.released, { value: error });
        await aborted;
        same([signal.reason.name, signal.reason.cause], ['AbortError', cause]);
        work.resolve();
        await t.quiet();
        equal(lock.release(), false);
      },
    },
    {
      id: 'Q16 X21',
      title: `a lock without a callback that is ${cause}: released rejects, its signal aborts, it cannot be extended`,
      async run(t) {
        const { name, lineage: { auto, explicit, requestFlag } } = t;
        const requests = [() => auto.requestLock(name()), () => explicit.requestLock(name()), () => requestFlag(name(), 'exclusive')];
        for (const request of requests) {
          const lock = await request();
          const extended = rejects(lock.waitUntil(new Promise(() => {})), 'AbortError');
          const { signal } = lock;
          await ways[cause](t, name());
          equal((await extended).cause, cause);
          equal((await rejects(lock.released, 'AbortError')).cause, cause);
          same([signal.aborted, signal.reason.cause, lock.release()], [true, cause, false]);
          await rejects(lock.waitUntil(Promise.resolve()), 'TypeError');
        }
      },
    },
  ];
}

export const losses = [
  ...Object.keys(ways).flatMap(lossCases),
  {
    id: 'X24',
    title: 'a loss without a handler leaves no unhandled rejection',
    async run(t) {
      const { name, lineage: { auto, explicit, requestFlag, scoped } } = t;
      const watch = watchUnhandled();
      const hold = new Promise(() => {});
      (await auto.requestLock(name('a'))).waitUntil(hold);
      await explicit.requestLock(name('b'));
      (await requestFlag(name('c'), 'exclusive')).waitUntil(hold);
      const victim = rejects(scoped.requestLock(name('d'), () => hold), 'AbortError');
      await t.quiet();
      for (const suffix of ['a', 'b', 'c', 'd']) await t.locks.request(name(suffix), { steal: true }, () => {});
      await victim;
      await t.quiet();
      watch.stop();
      same(watch.reasons, []);
    },
  },
];
