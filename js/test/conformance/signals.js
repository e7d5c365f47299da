// Abort signals.

import { equal, ok, rejects, same } from './check.js';

export const signals = [
  {
    id: 'F80',
    title: 'an aborted signal rejects with its reason, and nothing is asked',
    async run(t) {
      let called = false;
      const callback = () => { called = true; };
      const custom = { custom: 'reason' };
      await rejects(t.locks.request(t.base, { signal: AbortSignal.abort(custom) }, callback), { value: custom });
      const signal = AbortSignal.abort();
      const error = await rejects(t.locks.request(t.base, { signal }, callback), 'AbortError');
      equal(error, signal.reason);
      same(await t.query(), { held: [], pending: [] });
      await t.quiet();
      equal(called, false);
    },
  },
  {
    id: 'F81',
    title: 'an abort takes a pending request out of the queue, with its reason',
    async run(t) {
      const held = await t.hold(t.base);
      const controller = new AbortController();
      const waiting = t.ask(t.base, { signal: controller.signal });
      equal((await t.query()).pending.length, 1);
      const reason = new Error('enough');
      controller.abort(reason);
      await rejects(waiting.done, { value: reason });
      equal((await t.query()).pending.length, 0);
      held.release();
      await held.done;
      await t.quiet();
      equal(waiting.lock, undefined);
    },
  },
  {
    id: 'G3',
    title: 'an aborted request is in no snapshot any more, at once',
    async run(t) {
      const held = await t.hold(t.base);
      const controller = new AbortController();
      t.ask(t.base, { signal: controller.signal });
      controller.abort();
      equal((await t.query()).pending.length, 0);
      held.release();
      await held.done;
    },
  },
  {
    id: 'F82',
    title: 'the queue goes on after an abort',
    async run(t) {
      const held = await t.hold(t.base);
      const controller = new AbortController();
      const aborted = t.ask(t.base, { signal: controller.signal });
      const next = t.locks.request(t.base, () => 'granted');
      controller.abort();
      held.release();
      await rejects(aborted.done, 'AbortError');
      equal(await next, 'granted');
    },
  },
  {
    id: 'F83',
    title: 'an abort in the middle lets compatible followers through',
    async run(t) {
      const reader = await t.hold(t.base, { mode: 'shared' });
      const controller = new AbortController();
      const writer = t.ask(t.base, { signal: controller.signal });
      const follower = t.ask(t.base, { mode: 'shared' });
      await t.quiet();
      equal(follower.lock, undefined);
      controller.abort();
      await follower.granted;
      await rejects(writer.done, 'AbortError');
      reader.release();
      follower.release();
      await Promise.all([reader.done, follower.done]);
    },
  },
  {
    id: 'G2',
    title: 'an abort in the middle wakes those behind it while the first still holds',
    async run(t) {
      const reader = await t.hold(t.base, { mode: 'shared' });
      const controller = new AbortController();
      t.ask(t.base, { signal: controller.signal });
      const followers = [1, 2, 3].map(() => t.ask(t.base, { mode: 'shared' }));
      controller.abort();
      await Promise.all(followers.map(({ granted }) => granted));
      equal((await t.query()).held.length, 4);
      for (const one of [reader, ...followers]) {
        one.release();
        await one.done;
      }
    },
  },
  {
    id: 'F84',
    title: 'an abort in the same turn as the request: no callback, no leaked lock',
    async run(t) {
      const controller = new AbortController();
      const asked = t.ask(t.base, { signal: controller.signal });
      controller.abort();
      await rejects(asked.done, 'AbortError');
      ok(await t.available(t.base));
      await t.quiet();
      equal(asked.lock, undefined);
    },
  },
  {
    id: 'M3',
    title: 'an abort takes effect at once, even after promise jobs have run',
    async run(t) {
      const controller = new AbortController();
      const asked = t.ask(t.base, { signal: controller.signal });
      await null;
      await null;
      controller.abort();
      await rejects(asked.done, 'AbortError');
      ok(await t.available(t.base));
      await t.quiet();
      equal(asked.lock, undefined);
    },
  },
  {
    id: 'F85',
    title: 'an abort after the grant, or after the release, changes nothing',
    async run(t) {
      const controller = new AbortController();
      const held = await t.hold(t.base, { signal: controller.signal });
      controller.abort();
      await t.quiet();
      ok(!(await t.available(t.base)));
      held.release('ok');
      equal(await held.done, 'ok');
      const later = new AbortController();
      const result = await t.locks.request(t.base, { signal: later.signal }, () => 'done');
      later.abort();
      equal(result, 'done');
    },
  },
  {
    id: 'F86',
    title: 'an abort between grant and callback releases the lock unused',
    async run(t) {
      const held = await t.hold(t.base);
      const controller = new AbortController();
      const first = t.ask(t.base, { signal: controller.signal });
      const second = t.ask(t.base);
      held.release();
      // The first is granted when the release is done; its callback has a turn of its own, which has not come.
      await held.done;
      controller.abort();
      await rejects(first.done, 'AbortError');
      await second.granted;
      equal(first.lock, undefined);
      second.release();
      await second.done;
    },
  },
  {
    id: 'F87',
    title: 'one signal ends all its pending requests and none of its held locks',
    async run(t) {
      const controller = new AbortController();
      const { signal } = controller;
      const held = await t.hold(t.base, { signal });
      const waiting = Array.from({ length: 100 }, () => t.ask(t.base, { signal }));
      controller.abort('enough');
      for (const { done } of waiting) await rejects(done, { value: 'enough' });
      const { held: holders, pending } = await t.query();
      same([holders.length, pending.length], [1, 0]);
      held.release('kept');
      equal(await held.done, 'kept');
    },
  },
  {
    id: 'F88',
    title: 'AbortSignal.timeout and AbortSignal.any work with their reasons',
    async run(t) {
      const held = await t.hold(t.base);
      // Some runtimes do not stay alive for the timer of a signal.
      const alive = setInterval(() => {}, 1000);
      await rejects(t.ask(t.base, { signal: AbortSignal.timeout(5) }).done, 'TimeoutError');
      clearInterval(alive);
      const [first, second] = [new AbortController(), new AbortController()];
      const either = t.ask(t.base, { signal: AbortSignal.any([first.signal, second.signal]) });
      second.abort('second');
      first.abort('first');
      await rejects(either.done, { value: 'second' });
      held.release();
      await held.done;
    },
  },
  {
    id: 'F89',
    title: 'a grant stops listening to the signal',
    patience: 12,
    async run({ locks, base }) {
      const controller = new AbortController();
      const { signal } = controller;
      let listening = 0;
      signal.addEventListener = function (...given) {
        listening++;
        return EventTarget.prototype.addEventListener.apply(this, given);
      };
      signal.removeEventListener = function (...given) {
        listening--;
        return EventTarget.prototype.removeEventListener.apply(this, given);
      };
      for (let count = 0; count < 1000; count++) await locks.request(base, { signal }, () => equal(listening, 0));
      // One that waits listens, in whatever way: an abort ends that one, and not the holder.
      const holder = locks.request(base, { signal }, async () => {
        const ended = rejects(locks.request(base, { signal }, () => ok(false, 'the waiter was granted')), 'AbortError');
        controller.abort();
        await ended;
        return 'kept';
      });
      equal(await holder, 'kept');
    },
  },
  {
    id: 'G10',
    title: 'a long-lived signal on a thousand granted requests ends none of them later',
    patience: 12,
    async run(t) {
      const controller = new AbortController();
      const { signal } = controller;
      const held = await Promise.all(Array.from({ length: 1000 }, (_, index) => t.hold(t.name(` ${index}`), { signal })));
      controller.abort();
      await t.quiet();
      for (const [index, { release, done }] of held.entries()) {
        release(index);
        equal(await done, index);
      }
    },
  },
  {
    id: 'D10',
    title: 'an abort is heard even when another listener stops the event',
    needs: ['resists'],
    async run(t) {
      const held = await t.hold(t.base);
      const controller = new AbortController();
      controller.signal.addEventListener('abort', (event) => event.stopImmediatePropagation());
      const asked = t.ask(t.base, { signal: controller.signal });
      controller.abort('heard');
      await rejects(asked.done, { value: 'heard' });
      held.release();
      await held.done;
    },
  },
];
