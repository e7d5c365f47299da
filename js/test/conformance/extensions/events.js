// Event streams of a lock space, and contention.

import { equal, ok, rejects, same } from '../check.js';

/** Reads a stream until it has a number of events about the case's own names. */
async function read(stream, base, count) {
  const events = [];
  while (events.length < count) {
    const { value } = await stream.next();
    if (value.type === 'gap' || value.scope[0].startsWith(base)) events.push(value);
  }
  return events;
}

const types = (events) => events.map(({ type }) => type);

export const events = [
  {
    id: 'extension',
    title: 'events follow each request in order, with the details of inspect()',
    async run({ extended: locks, name, base }) {
      const stream = locks.events();
      const held = await locks.hold(name(), { tag: 'first' });
      const { held: known } = await locks.inspect();
      const waiting = locks.hold([name(), name('other')], { mode: 'shared' });
      equal(await locks.hold(name(), { ifAvailable: true }), null);
      held.release();
      (await waiting).release();
      const told = await read(stream, base, 8);
      same(types(told), ['requested', 'granted', 'requested', 'requested', 'unavailable', 'released', 'granted', 'released']);
      const [lock] = known.filter(({ scope }) => scope[0] === name());
      const { id, scope, mode, clientId, tag, fencingToken } = told[1];
      same([id, scope, mode, clientId, tag, fencingToken], [lock.id, [name()], 'exclusive', locks.clientId, 'first', held.fencingToken]);
      same([told[2].scope, told[2].mode, told[2].tag], [[name(), name('other')], 'shared', undefined]);
      same([told[0].id, told[5].id, told[6].id], [id, id, told[2].id]);
      await stream.return();
      same(await stream.next(), { done: true, value: undefined });
    },
  },
  {
    id: 'extension',
    title: 'events have the thief, the cause of a loss, and withdrawn requests',
    async run({ extended: locks, name, base }) {
      const stream = locks.events();
      const held = await locks.hold(name());
      const controller = new AbortController();
      const taken = rejects(locks.hold(name(), { signal: controller.signal }), 'AbortError');
      controller.abort();
      await taken;
      const thief = await locks.hold(name(), { steal: true });
      equal(await locks.forceRelease(name()), 1);
      const told = await read(stream, base, 8);
      same(types(told), ['requested', 'granted', 'requested', 'withdrawn', 'requested', 'lost', 'granted', 'lost']);
      same([told[5].cause, told[5].thief], ['Stolen', told[4].id]);
      same([told[7].cause, told[7].thief, told[7].id], ['ForceReleased', undefined, told[4].id]);
      same([held.held, thief.held], [false, false]);
      await stream.return();
    },
  },
  {
    id: 'extension',
    title: 'a stream has events of other clients, and the end of a client ends its requests',
    needs: ['newClient'],
    async run(bench) {
      const { extended: locks, name, base } = bench;
      const stream = locks.events();
      const mine = await locks.hold(name('mine'));
      const other = await bench.client();
      await other.hold(name());
      await other.request(name('mine'));
      await other.kill();
      const events = await read(stream, base, 7);
      mine.release();
      events.push(...(await read(stream, base, 1)));
      const told = events.map(({ type, scope, cause, clientId }) => ({ type, scope, cause, own: clientId === locks.clientId }));
      const ends = told.filter(({ cause }) => cause === 'ClientEnded');
      same(ends.map(({ type, scope }) => [type, scope[0]]).sort(), [['aborted', name('mine')], ['lost', name()]]);
      same(told.map(({ own }) => own).sort(), [false, false, false, false, false, true, true, true]);
      await stream.return();
    },
  },
  {
    id: 'extension',
    title: 'a slow stream drops the oldest events, and has a gap with their number',
    async run({ extended: locks, name, base, quiet }) {
      const stream = locks.events({ capacity: 4 });
      const other = locks.events();
      for (let count = 0; count < 5; count++) await locks.request(name(`${count}`), () => {});
      await read(other, base, 15);
      const [gap, ...kept] = await read(stream, base, 5);
      equal(gap.type, 'gap');
      ok(gap.missed >= 11, `${gap.missed}`);
      same(types(kept), ['released', 'requested', 'granted', 'released']);
      for (const capacity of [0, -1, NaN, 'many', {}]) await rejects((async () => locks.events({ capacity }))(), 'TypeError');
      await Promise.all([stream.return(), other.return()]);
      await quiet(locks);
    },
  },
  {
    id: 'extension',
    title: 'return() ends a pending read, and a later stream has only later events',
    async run({ extended: locks, name, base }) {
      const first = locks.events();
      await locks.request(name('before'), () => {});
      const second = locks.events();
      await locks.request(name('after'), () => {});
      same((await read(second, base, 3)).map(({ scope }) => scope[0]), [name('after'), name('after'), name('after')]);
      await read(first, base, 6);
      const waiting = (async () => {
        for await (const event of second) if (event.scope[0].startsWith(base)) return event;
        return 'ended';
      })();
      await second.return();
      equal(await waiting, 'ended');
      await first.return();
    },
  },
  {
    id: 'extension',
    title: 'contended() resolves when a request waits, also if it already waits',
    async run({ extended: locks, name }) {
      const held = await locks.hold(name());
      const watched = held.contended();
      equal(held.contended() === undefined, false);
      const first = locks.hold(name());
      equal(await watched, true);
      equal(await held.contended(), true);
      held.release();
      (await first).release();
      // The lock of a callback has the method too.
      const polite = locks.request(name(), async (lock) => lock.contended());
      const next = locks.request(name(), () => 'next');
      same(await Promise.all([polite, next]), [true, 'next']);
    },
  },
  {
    id: 'extension',
    title: 'contended() resolves with false if the lock ends first',
    async run({ extended: locks, name }) {
      const released = await locks.hold(name());
      const one = released.contended();
      released.release();
      same([await one, await released.contended()], [false, false]);
      const robbed = await locks.hold(name());
      const other = robbed.contended();
      const thief = await locks.hold(name(), { steal: true });
      equal(await other, false);
      thief.release();
    },
  },
];
