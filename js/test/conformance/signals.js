// Abort signals.

import { equal, ok, rejects, same } from './check.js';

export const signals = [
  {
    id: 'F80 D11',
    title: 'an aborted signal rejects with its reason, and no request is made',
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
    title: 'an abort removes a pending request from the queue, with its reason',
    async run(t) {
      const held = await t.hold(t.base);
      const controller = new AbortController();
      const waiting = t.request(t.base, { signal: controller.signal });
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
    title: 'an aborted request is in no later snapshot',
    async run(t) {
      const held = await t.hold(t.base);
      const controller = new AbortController();
      t.request(t.base, { signal: controller.signal });
      controller.abort();
      equal((await t.query()).pending.length, 0);
      held.release();
      await held.done;
    },
  },
  {
    id: 'F82',
    title: 'the queue advances after an abort',
    async run(t) {
      const held = await t.hold(t.base);
      const controller = new AbortController();
      const aborted = t.request(t.base, { signal: controller.signal });
      const next = t.locks.request(t.base, () => 'granted');
      controller.abort();
      held.release();
      await rejects(aborted.done, 'AbortError');
      equal(await next, 'granted');
    },
  },
  {
    id: 'F83',
    title: 'an abort in the middle of a queue grants compatible waiters behind it',
    async run(t) {
      const reader = await t.hold(t.base, { mode: 'shared' });
      const controller = new AbortController();
      const writer = t.request(t.base, { signal: controller.signal });
      const follower = t.request(t.base, { mode: 'shared' });
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
    title: 'an abort in the middle of a queue grants waiters behind it beside the first holder',
    async run(t) {
      const reader = await t.hold(t.base, { mode: 'shared' });
      const controller = new AbortController();
      t.request(t.base, { signal: controller.signal });
      const followers = [1, 2, 3].map(() => t.request(t.base, { mode: 'shared' }));
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
      const request = t.request(t.base, { signal: controller.signal });
      controller.abort();
      await rejects(request.done, 'AbortError');
      // The lock may be held until the callback would run, as in the standard's text.
      equal(await t.locks.request(t.base, () => 'granted'), 'granted');
      ok(await t.available(t.base));
      equal(request.lock, undefined);
    },
  },
  {
    id: 'M3',
    title: 'an abort takes effect at once, even after promise jobs have run',
    async run(t) {
      const controller = new AbortController();
      const request = t.request(t.base, { signal: controller.signal });
      await null;
      await null;
      controller.abort();
      await rejects(request.done, 'AbortError');
      // The lock may be held until the callback would run, as in the standard's text.
      equal(await t.locks.request(t.base, () => 'granted'), 'granted');
      ok(await t.available(t.base));
      equal(request.lock, undefined);
    },
  },
  {
    id: 'F85 D12',
    title: 'an abort after the grant, or after the release, has no effect',
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
      const first = t.request(t.base, { signal: controller.signal });
      const second = t.request(t.base);
      held.release();
      // The release grants the first, whose callback has a later turn.
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
    title: 'one signal aborts all its pending requests and none of its held locks',
    async run(t) {
      const controller = new AbortController();
      const { signal } = controller;
      const held = await t.hold(t.base, { signal });
      const waiting = Array.from({ length: 100 }, () => t.request(t.base, { signal }));
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
      // In some runtimes the timer of a signal does not keep the process alive.
      const alive = setInterval(() => {}, 1000);
      await rejects(t.request(t.base, { signal: AbortSignal.timeout(5) }).done, 'TimeoutError');
      clearInterval(alive);
      const [first, second] = [new AbortController(), new AbortController()];
      const either = t.request(t.base, { signal: AbortSignal.any([first.signal, second.signal]) });
      second.abort('second');
      first.abort('first');
      await rejects(either.done, { value: 'second' });
      held.release();
      await held.done;
    },
  },
  {
    id: 'F89',
    title: 'a grant removes its request from the signal',
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
      // An abort ends the pending request, and not the holder.
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
    title: 'a late abort of a signal does not affect a thousand granted requests',
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
    title: 'an abort takes effect even if another listener stops the event',
    needs: ['resists'],
    async run(t) {
      const held = await t.hold(t.base);
      const controller = new AbortController();
      controller.signal.addEventListener('abort', (event) => event.stopImmediatePropagation());
      const request = t.request(t.base, { signal: controller.signal });
      controller.abort('reason');
      await rejects(request.done, { value: 'reason' });
      held.release();
      await held.done;
    },
  },
];
