// Arguments: conversions, the order of checks, and errors as rejections.

import { equal, ok, rejects, same } from './check.js';

const nothing = () => {};

function aborted(reason) {
  return AbortSignal.abort(reason);
}

export const args = [
  {
    id: 'F20',
    title: 'too few arguments reject',
    async run({ locks, base }) {
      await rejects(locks.request(), 'TypeError');
      await rejects(locks.request(base), 'TypeError');
      await rejects(locks.request(nothing), 'TypeError');
    },
  },
  {
    id: 'F21',
    title: 'a callback must be callable',
    async run({ locks, base }) {
      for (const callback of [undefined, null, 123, 'abc', [], {}, Promise.resolve(), Symbol('s')]) {
        await rejects(locks.request(base, callback), 'TypeError', typeof callback);
        await rejects(locks.request(base, {}, callback), 'TypeError', typeof callback);
      }
    },
  },
  {
    id: 'F22',
    title: 'null and undefined are valid options, other primitives are not',
    async run({ locks, base }) {
      for (const options of [null, undefined, {}, [], new Date(0)]) equal(await locks.request(base, options, () => 1), 1);
      for (const options of [5, 'x', true, Symbol('s'), 1n]) await rejects(locks.request(base, options, nothing), 'TypeError');
    },
  },
  {
    id: 'F23',
    title: 'a function as the second of three arguments is the options',
    async run({ locks, base }) {
      const options = () => ok(false, 'the options were called');
      options.mode = 'shared';
      equal(await locks.request(base, options, (lock) => lock.mode), 'shared');
    },
  },
  {
    id: 'G13',
    title: 'arguments beyond the third are ignored, and undefined arguments count',
    async run({ locks, base }) {
      const called = [];
      const functions = ['second', 'third', 'fourth'].map((name) => () => (called.push(name), name));
      equal(await locks.request(base, ...functions), 'third');
      equal(await locks.request(base, {}, ...functions), 'second');
      same(called, ['third', 'second']);
      await rejects(locks.request(base, nothing, undefined), 'TypeError');
    },
  },
  {
    id: 'F24',
    title: 'a mode is exclusive, shared or omitted',
    async run({ locks, base }) {
      for (const mode of ['foo', null, 'Shared', '', ' shared', 0, Symbol('s')]) {
        await rejects(locks.request(base, { mode }, nothing), 'TypeError', String(mode));
      }
      equal(await locks.request(base, { mode: undefined }, (lock) => lock.mode), 'exclusive');
      equal(await locks.request(base, { mode: { toString: () => 'shared' } }, (lock) => lock.mode), 'shared');
    },
  },
  {
    id: 'F25',
    title: 'flags are converted as booleans',
    async run(t) {
      const { locks, base } = t;
      const held = await t.hold(base);
      const queued = t.request(base, { ifAvailable: '' });
      equal(await locks.request(base, { ifAvailable: 'yes' }, (lock) => lock), null);
      equal(await locks.request(base, { steal: 'x' }, () => 'stolen'), 'stolen');
      await rejects(held.done, 'AbortError');
      await queued.granted;
      queued.release();
      await queued.done;
    },
  },
  {
    id: 'F26',
    title: 'a signal must be an AbortSignal',
    async run({ locks, base }) {
      const bad = ['string', 12.34, false, null, {}, Symbol('s'), nothing, globalThis, new AbortController(), Object.create(AbortSignal.prototype), new EventTarget()];
      for (const signal of bad) await rejects(locks.request(base, { signal }, nothing), 'TypeError');
      equal(await locks.request(base, { signal: undefined }, () => 1), 1);
    },
  },
  {
    id: 'F27',
    title: 'a getter that throws rejects with what it threw, and no later member is read',
    async run({ locks, base }) {
      const members = ['ifAvailable', 'mode', 'signal', 'steal'];
      for (const [index, member] of members.entries()) {
        const reason = { member };
        const read = [];
        const options = tracked(read, { [member]: () => { throw reason; } });
        await rejects(locks.request(base, options, nothing), { value: reason });
        same(read, members.slice(0, index + 1));
      }
    },
  },
  {
    id: 'G12',
    title: 'options are read in order, each converted before the next is read',
    async run({ locks, base }) {
      const read = [];
      await locks.request(base, tracked(read, {}), nothing);
      same(read, ['ifAvailable', 'mode', 'signal', 'steal']);
      const converted = [];
      const mode = { toString() { converted.push('mode converted'); return 'shared'; } };
      await locks.request(base, tracked(converted, { mode: () => mode }), nothing);
      same(converted, ['ifAvailable', 'mode', 'mode converted', 'signal', 'steal']);
    },
  },
  {
    id: 'G12',
    title: 'the name is converted first, then the options, then the callback',
    async run({ locks, base }) {
      const read = [];
      const name = { toString() { read.push('name'); return base; } };
      await rejects(locks.request(name, tracked(read, {}), 'no callback'), 'TypeError');
      same(read, ['name', 'ifAvailable', 'mode', 'signal', 'steal']);
      await rejects(locks.request(base, { mode: 'bad' }, 'no callback'), 'TypeError');
    },
  },
  {
    id: 'F28',
    title: 'steal with ifAvailable is refused',
    async run({ locks, base }) {
      await rejects(locks.request(base, { steal: true, ifAvailable: true }, nothing), 'NotSupportedError');
    },
  },
  {
    id: 'F29',
    title: 'steal with shared is refused',
    async run({ locks, base }) {
      await rejects(locks.request(base, { steal: true, mode: 'shared' }, nothing), 'NotSupportedError');
    },
  },
  {
    id: 'F30',
    title: 'a signal with steal or ifAvailable is refused',
    async run({ locks, base }) {
      const { signal } = new AbortController();
      await rejects(locks.request(base, { signal, steal: true }, nothing), 'NotSupportedError');
      await rejects(locks.request(base, { signal, ifAvailable: true }, nothing), 'NotSupportedError');
    },
  },
  {
    id: 'F31',
    title: 'the checks come in order: name, combinations, signal',
    async run({ locks, base }) {
      const reason = new Error('aborted');
      const signal = aborted(reason);
      await rejects(locks.request('-', { signal }, nothing), 'NotSupportedError');
      await rejects(locks.request(base, { signal, steal: true }, nothing), 'NotSupportedError');
      await rejects(locks.request(base, { signal, ifAvailable: true }, nothing), 'NotSupportedError');
      await rejects(locks.request('-', { mode: 'bad' }, nothing), 'TypeError');
      await rejects(locks.request(base, { signal }, nothing), { value: reason });
    },
  },
  {
    id: 'G6',
    title: 'a reserved name is refused before an aborted signal',
    async run({ locks }) {
      await rejects(locks.request('-x', { signal: aborted(1) }, nothing), 'NotSupportedError');
    },
  },
  {
    id: 'F32',
    title: 'a refused call leaves no request in the queue',
    async run(t) {
      const { locks, base } = t;
      const called = [];
      const callback = () => called.push('called');
      const bad = [
        [base, {}],
        [base, { mode: 'bad' }, callback],
        [base, { signal: {} }, callback],
        [base, { steal: true, ifAvailable: true }, callback],
        [base, { steal: true, mode: 'shared' }, callback],
        [base, { signal: aborted(1) }, callback],
      ];
      for (const call of bad) {
        await rejects(locks.request(...call));
        same(await t.query(), { held: [], pending: [] });
      }
      await t.quiet();
      same(called, []);
    },
  },
  {
    id: 'F33',
    title: 'a wrong receiver rejects',
    async run({ base, provider: { LockManager } }) {
      const { request, query } = LockManager.prototype;
      for (const wrong of [{}, undefined, null, 5, LockManager.prototype, Object.create(LockManager.prototype)]) {
        await rejects(request.call(wrong, base, nothing), 'TypeError');
        await rejects(query.call(wrong), 'TypeError');
      }
    },
  },
  {
    id: 'M1',
    title: 'errors reject a Promise of this realm, and are never thrown',
    async run({ locks }) {
      const error = await rejects(locks.request(), 'TypeError');
      ok(error instanceof TypeError);
      const exception = await rejects(locks.request('-', nothing), 'NotSupportedError');
      ok(exception instanceof DOMException);
      equal(exception.code, DOMException.NOT_SUPPORTED_ERR);
    },
  },
];

/** Returns options that note which members are read. */
function tracked(read, values) {
  const options = {};
  // Defined in another order than that of reading.
  for (const member of ['steal', 'signal', 'mode', 'ifAvailable']) {
    Object.defineProperty(options, member, {
      get() {
        read.push(member);
        return values[member]?.();
      },
    });
  }
  return options;
}
