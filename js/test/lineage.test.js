// The older APIs of the same lineage, row by row.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { locks } from 'navlocks';
import { acquire, Flag, forceRelease, Lock, query, requestExplicitLock, requestFlag, requestLock } from 'navlocks/lineage';
import { Dice } from './dice.js';
import { startClient } from './threads.js';

let counter = 0;
const unique = () => `lineage ${++counter}`;

async function rejection(promise) {
  return promise.then(
    (value) => assert.fail(`fulfilled with ${value}`),
    (error) => error,
  );
}

/** A promise with its resolve and reject. */
function deferred() {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}

/** Waits until all that is under way in this thread has happened. */
async function quiet() {
  for (let count = 0; count < 3; count++) await new Promise((resolve) => setImmediate(resolve));
}

const available = (name, mode = 'exclusive') => locks.request(name, { mode, ifAvailable: true }, (lock) => lock !== null);

const about = async (...names) => {
  const { held, pending } = await query();
  return [held, pending].map((rows) => rows.filter(({ name }) => names.includes(name)).map(({ name, mode }) => `${mode} ${name}`));
};

/** acquire() that holds until told. */
function acquired(name, options = {}) {
  const { promise, resolve } = deferred();
  const result = { release: resolve };
  result.granted = new Promise((granted) => {
    result.done = acquire(name, options, (lock) => {
      granted(lock);
      return promise;
    });
  });
  result.done.catch(() => {});
  return result;
}

// ---- acquire, forceRelease, query

test('P01 acquire with and without options gives what the callback gives', async () => {
  assert.equal(await acquire(unique(), () => 1), 1);
  assert.equal(await acquire(unique(), { mode: 'shared' }, (lock) => lock.mode), 'shared');
  for (const wrong of [[], ['a'], ['a', 5], ['a', {}, 5], ['a', { mode: 'x' }, () => {}], [Symbol('s'), () => {}]]) {
    assert.equal((await rejection(acquire(...wrong))).name, 'TypeError');
  }
});

test('P03 the queue is processed before the old promise resolves', async () => {
  const name = unique();
  const order = [];
  const first = acquire(name, () => {}).then(() => order.push('old promise'));
  const second = acquire(name, () => order.push('next callback'));
  await Promise.all([first, second]);
  assert.deepEqual(order, ['next callback', 'old promise']);
});

test('P04 P05 exclusive needs a free name and no earlier request, shared no exclusive one', async () => {
  const name = unique();
  const reader = acquired(name, { mode: 'shared' });
  await reader.granted;
  assert.equal(await acquire(name, { mode: 'shared', ifAvailable: true }, (lock) => lock !== null), true);
  const writer = acquired(name);
  assert.equal(await acquire(name, { mode: 'shared', ifAvailable: true }, (lock) => lock), null);
  reader.release();
  await writer.granted;
  assert.equal(await acquire(name, { ifAvailable: true }, (lock) => lock), null);
  writer.release();
  await writer.done;
});

test('P06 unrelated names are granted in the order of arrival', async () => {
  const [a, b, c] = [unique(), unique(), unique()];
  const held = acquired(a);
  await held.granted;
  const order = [];
  const blocked = acquire(a, () => order.push('a'));
  await Promise.all([acquire(b, () => order.push('b')), acquire(c, () => order.push('c'))]);
  assert.deepEqual(order, ['b', 'c']);
  held.release();
  await blocked;
});

test('P07 query tells names and modes, held ones in grant order', async () => {
  const [a, b] = [unique(), unique()];
  const held = [acquired(b), acquired(a, { mode: 'shared' })];
  await Promise.all(held.map(({ granted }) => granted));
  const waiting = acquired(b);
  const snapshot = await query();
  const own = (rows) => rows.filter(({ name }) => [a, b].includes(name));
  assert.deepEqual(own(snapshot.held), [{ name: b, mode: 'exclusive' }, { name: a, mode: 'shared' }]);
  assert.deepEqual(own(snapshot.pending), [{ name: b, mode: 'exclusive' }]);
  for (const one of [...held, waiting]) one.release();
  await waiting.done;
});

test('P08 a lock tells name and mode', async () => {
  const keys = [];
  const lock = await acquire('P08', (given) => given);
  for (const key in lock) keys.push(key);
  assert.deepEqual(keys, ['name', 'mode']);
});

test('P09 nothing is stolen by default', async () => {
  const name = unique();
  const held = acquired(name);
  await held.granted;
  const waiting = acquired(name);
  assert.deepEqual(await about(name), [[`exclusive ${name}`], [`exclusive ${name}`]]);
  held.release('kept');
  assert.equal(await held.done, 'kept');
  await waiting.granted;
  waiting.release();
});

test('P10 P11 P12 a steal ends the holders and the queue, and is granted at once', async () => {
  const name = unique();
  const held = acquired(name);
  await held.granted;
  const queued = [acquired(name), acquired(name, { mode: 'shared' })];
  const thief = acquired(name, { steal: true });
  for (const { done } of [held, ...queued]) {
    const error = await rejection(done);
    assert.deepEqual([error.name, error.cause], ['AbortError', 'Stolen']);
  }
  await thief.granted;
  assert.deepEqual(await about(name), [[`exclusive ${name}`], []]);
  thief.release();
  await thief.done;
});

test('P13 options may be combined: a shared steal, a conditional one, a signal with either', async () => {
  const name = unique();
  const held = acquired(name);
  await held.granted;
  const { signal } = new AbortController();
  assert.equal(await acquire(name, { steal: true, mode: 'shared' }, (lock) => lock.mode), 'shared');
  assert.equal((await rejection(held.done)).name, 'AbortError');
  assert.equal(await acquire(name, { steal: true, ifAvailable: true, signal }, (lock) => lock !== null), true);
  assert.equal(await acquire(name, { ifAvailable: true, signal }, (lock) => lock !== null), true);
});

test('P14 a miss calls back with null, once, and is not queued', async () => {
  const name = unique();
  const held = acquired(name);
  await held.granted;
  let count = 0;
  assert.equal(await acquire(name, { ifAvailable: true }, (lock) => (count++, lock)), null);
  assert.deepEqual((await about(name))[1], []);
  held.release();
  await held.done;
  await quiet();
  assert.equal(count, 1);
});

test('P15 an abort rejects with a new AbortError, also after the grant, and then the lock stays held', async () => {
  const name = unique();
  const controller = new AbortController();
  const { signal } = controller;
  const held = acquired(name, { signal });
  await held.granted;
  const waiting = acquired(name, { signal });
  const next = acquired(name);
  controller.abort(new Error('the reason of the signal'));
  for (const { done } of [held, waiting]) assert.equal((await rejection(done)).name, 'AbortError');
  assert.equal(await available(name), false);
  held.release();
  await next.granted;
  next.release();
  await next.done;
});

test('P15 a signal is listened to until the end, and no longer', async () => {
  const { signal } = new AbortController();
  await acquire(unique(), { signal }, () => assert.equal(getEventListeners(signal, 'abort').length, 1));
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('P15 a signal that was aborted before is not looked at', async () => {
  assert.equal(await acquire(unique(), { signal: AbortSignal.abort() }, () => 'granted'), 'granted');
});

test('P16 forceRelease takes all holders in one step, tells them, and leaves the queue', async () => {
  const name = unique();
  const readers = [acquired(name, { mode: 'shared' }), acquired(name, { mode: 'shared' })];
  await Promise.all(readers.map(({ granted }) => granted));
  const writer = acquired(name);
  assert.equal(forceRelease(name), undefined);
  await writer.granted;
  for (const { done } of readers) {
    const error = await rejection(done);
    assert.deepEqual([error.name, error.cause], ['AbortError', 'ForceReleased']);
  }
  writer.release();
  await writer.done;
});

test('P17 Q21 X38 the end of a client gives its locks to the next', async () => {
  const name = unique();
  const other = await startClient('navlocks');
  await other.hold(name);
  const mine = acquired(name);
  const lock = requestLock([name, unique()]);
  await other.kill();
  await mine.granted;
  mine.release();
  await (await lock).released;
});

test('P18 names are free', async () => {
  assert.equal(await acquire('-a', (lock) => lock.name), '-a');
  (await requestExplicitLock(['-b', '-c'])).release();
});

// ---- requestLock

test('Q01 one name and a list of it are the same scope', async () => {
  const name = unique();
  const lock = await requestExplicitLock(name);
  assert.deepEqual(lock.scope, [name]);
  assert.equal(await requestLock([name], { ifAvailable: true }), null);
  lock.release();
});

test('Q02 Q03 a scope is a frozen sorted set, by code units', async () => {
  const lock = await requestLock(['b', 'a', 'b']);
  assert.deepEqual(lock.scope, ['a', 'b']);
  assert.ok(Object.isFrozen(lock.scope));
  assert.equal(lock.scope, lock.scope);
  await lock.released;
  const other = await requestLock(new Set(['\uFF5E', '\u{10000}']));
  assert.deepEqual(other.scope, ['\u{10000}', '\uFF5E']);
  await other.released;
});

test('Q04 an empty scope rejects with TypeError', async () => {
  assert.equal((await rejection(requestLock([]))).name, 'TypeError');
  assert.equal((await rejection(requestFlag([], 'shared'))).name, 'TypeError');
});

test('Q05 scopes conflict by their intersection', async () => {
  const [a, b, c] = [unique(), unique(), unique()];
  const lock = await requestExplicitLock([a, b]);
  const waiting = requestExplicitLock([b, c], { mode: 'shared' });
  await quiet();
  assert.deepEqual(await about(b, c), [[`exclusive ${b}`], [`shared ${b}`, `shared ${c}`]]);
  assert.equal(await available(c), false);
  assert.equal(await available(c, 'shared'), true);
  lock.release();
  (await waiting).release();
});

test('Q06 Q07 Q10 a scope waits whole, reserves its place, and frees it when aborted', async () => {
  const [a, b] = [unique(), unique()];
  const first = await requestExplicitLock(a);
  const controller = new AbortController();
  const both = requestLock([a, b], { signal: controller.signal });
  const behind = [requestExplicitLock(b), requestExplicitLock(b, { mode: 'shared' })];
  await quiet();
  assert.deepEqual((await about(b))[0], []);
  controller.abort();
  assert.equal((await rejection(both)).name, 'AbortError');
  (await behind[0]).release();
  (await behind[1]).release();
  first.release();
});

test('Q08 shared passes an earlier waiting shared, but no exclusive', async () => {
  const [a, b] = [unique(), unique()];
  const first = await requestExplicitLock(a);
  const waiting = requestExplicitLock([a, b], { mode: 'shared' });
  (await requestExplicitLock(b, { mode: 'shared' })).release();
  const writer = requestExplicitLock(b);
  assert.equal(await requestLock(b, { mode: 'shared', ifAvailable: true }), null);
  first.release();
  (await waiting).release();
  (await writer).release();
});

test('Q09 scopes in any order do not deadlock', async () => {
  const [a, b] = [unique(), unique()];
  let count = 0;
  async function loop(scope) {
    for (let round = 0; round < 200; round++) {
      const lock = await requestLock(scope);
      await lock.waitUntil(Promise.resolve(count++));
    }
  }
  await Promise.all([loop([a, b]), loop([b, a]), loop([a]), loop([b])]);
  assert.equal(count, 800);
});

test('Q11 Q12 Q19 the promise gives a lock, which releases itself', async () => {
  const name = unique();
  const lock = await requestLock(name);
  assert.ok(lock instanceof Lock);
  assert.equal(lock.mode, 'exclusive');
  assert.equal(await lock.released, undefined);
  assert.equal(await available(name), true);
});

test('Q12 nobody needs to look at it for that', async () => {
  const name = unique();
  requestLock(name);
  const next = await requestLock(name);
  assert.ok(next);
});

test('Q13 who awaits the lock always comes in time', async () => {
  for (let round = 0; round < 1000; round++) {
    const lock = await requestLock('Q13');
    await lock.waitUntil(null);
    requestLock('Q13').then((other) => other.waitUntil(null)).then((value) => assert.equal(value, undefined));
  }
});

test('Q14 Q15 it is held until all promises fulfil, also those added meanwhile', async () => {
  const name = unique();
  const [first, second] = [deferred(), deferred()];
  const lock = await requestLock(name);
  lock.waitUntil(first.promise);
  await quiet();
  lock.waitUntil(second.promise);
  first.resolve();
  await quiet();
  assert.equal(await available(name), false);
  second.resolve();
  await lock.released;
  assert.equal(await available(name), true);
});

test('Q16 a rejection releases at once and is passed on', async () => {
  const name = unique();
  const lock = await requestLock(name);
  const [pending, failing] = [deferred(), deferred()];
  lock.waitUntil(pending.promise).catch(() => {});
  lock.waitUntil(failing.promise).catch(() => {});
  const next = requestExplicitLock(name);
  const reason = new Error('failed');
  failing.reject(reason);
  assert.equal(await rejection(lock.released), reason);
  (await next).release();
  pending.resolve();
});

test('Q17 Q18 waitUntil returns released, and rejects with TypeError when it is too late', async () => {
  const lock = await requestLock(unique());
  assert.equal(lock.waitUntil(Promise.resolve()), lock.released);
  await lock.released;
  const late = lock.waitUntil(Promise.resolve());
  assert.ok(late instanceof Promise);
  assert.equal((await rejection(late)).name, 'TypeError');
});

test('Q20 an abort ends a request that waits, and is ignored after the grant', async () => {
  const name = unique();
  const controller = new AbortController();
  const lock = await requestExplicitLock(name, { signal: controller.signal });
  const waiting = requestLock(name, { signal: controller.signal });
  controller.abort();
  assert.equal((await rejection(waiting)).name, 'AbortError');
  assert.equal(await available(name), false);
  assert.equal(lock.release(), true);
});

// ---- requestFlag

test('T01 the mode is required', async () => {
  assert.equal((await rejection(requestFlag('a'))).name, 'TypeError');
  assert.equal((await rejection(requestFlag('a', undefined))).name, 'TypeError');
  assert.equal((await rejection(requestFlag('a', 'other'))).name, 'TypeError');
});

test('T02 a flag has scope, mode, released and waitUntil', async () => {
  const flag = await requestFlag(['b', 'a'], 'shared');
  assert.ok(flag instanceof Flag);
  assert.deepEqual([flag.scope, flag.mode], [['a', 'b'], 'shared']);
  assert.equal(flag.waitUntil(null), flag.released);
  assert.equal(await flag.released, undefined);
});

test('T03 T09 without a timeout it waits, in the usual order', async () => {
  const name = unique();
  const lock = await requestExplicitLock(name);
  const order = [];
  const flags = ['shared', 'exclusive', 'shared'].map((mode, index) =>
    requestFlag(name, mode).then((flag) => {
      order.push(index);
      return flag.released;
    }),
  );
  lock.release();
  await Promise.all(flags);
  assert.deepEqual(order, [0, 1, 2]);
});

test('T04 T08 a timeout of some milliseconds rejects with TimeoutError, and followers are granted', async () => {
  const name = unique();
  const reader = await requestExplicitLock(name, { mode: 'shared' });
  const start = performance.now();
  const writer = requestFlag(name, 'exclusive', { timeout: 50 });
  const follower = requestFlag(name, 'shared');
  const error = await rejection(writer);
  assert.equal(error.name, 'TimeoutError');
  assert.ok(performance.now() - start > 45, 'not milliseconds');
  await (await follower).released;
  reader.release();
});

test('T05 a timeout of zero tries once', async () => {
  const name = unique();
  const flag = await requestFlag(name, 'exclusive', { timeout: 0 });
  flag.waitUntil(quiet());
  const tried = requestFlag(name, 'exclusive', { timeout: 0 });
  assert.deepEqual((await about(name))[1], []);
  assert.equal((await rejection(tried)).name, 'TimeoutError');
  await flag.released;
});

test('T06 the timeout stops at the grant', async () => {
  const flag = await requestFlag(unique(), 'exclusive', { timeout: 10 });
  await flag.waitUntil(new Promise((resolve) => setTimeout(resolve, 40)));
});

test('T07 a race of timeout and grant has one outcome, and leaks nothing', async (t) => {
  const dice = Dice.fromEnvironment();
  t.diagnostic(`NAVLOCKS_SEED=${dice.seed}`);
  const name = unique();
  const outcomes = { granted: 0, timeout: 0 };
  for (let round = 0; round < 100; round++) {
    const holder = await requestExplicitLock(name);
    const races = Array.from({ length: 100 }, () =>
      requestFlag(name, 'shared', { timeout: 1 + dice.roll(3) }).then(
        () => outcomes.granted++,
        (error) => {
          assert.equal(error.name, 'TimeoutError');
          outcomes.timeout++;
        },
      ),
    );
    setTimeout(() => holder.release(), 1 + dice.roll(3));
    await Promise.all(races);
  }
  assert.equal(outcomes.granted + outcomes.timeout, 10_000);
  assert.equal(await locks.request(name, () => 'free'), 'free');
});

// ---- the explainer

test('X01 X02 X03 X04 X05 the example of the explainer', async () => {
  const [a, b, c] = [unique(), unique(), unique()];
  const granted = new Map();
  const ask = (number, scope, mode) => requestExplicitLock(scope, { mode }).then((lock) => granted.set(number, lock));
  const all = [ask(1, a, 'exclusive'), ask(2, b, 'shared'), ask(3, b, 'shared'), ask(4, [a, b], 'exclusive'), ask(5, b, 'shared'), ask(6, c, 'exclusive')];
  const now = async () => {
    await quiet();
    return [...granted.keys()].sort();
  };
  assert.deepEqual(await now(), [1, 2, 3, 6]);
  granted.get(1).release();
  assert.deepEqual(await now(), [1, 2, 3, 6]);
  granted.get(2).release();
  assert.deepEqual(await now(), [1, 2, 3, 6]);
  granted.get(3).release();
  assert.deepEqual(await now(), [1, 2, 3, 4, 6]);
  granted.get(4).release();
  assert.deepEqual(await now(), [1, 2, 3, 4, 5, 6]);
  await Promise.all(all);
  granted.get(5).release();
  granted.get(6).release();
});

test('X21 X22 an explicit lock is held until it is released, also after a throw; twice does nothing', async () => {
  const name = unique();
  let kept;
  const careless = async () => {
    kept = await requestExplicitLock(name);
    throw new Error('forgot');
  };
  await rejection(careless());
  await quiet();
  assert.equal(await available(name), false);
  assert.deepEqual([kept.release(), kept.release()], [true, false]);
  assert.equal(await kept.released, undefined);
});

test('X22 a handle that is disposed of releases after a throw', async () => {
  const name = unique();
  const careful = async () => {
    const lock = await locks.hold(name);
    try {
      throw new Error('remembered');
    } finally {
      lock[Symbol.dispose]();
    }
  };
  await rejection(careful());
  assert.equal(await available(name), true);
});

test('X24 with a callback it is held as long as that runs, and gives its result', async () => {
  const name = unique();
  const result = await requestLock(name, async (lock) => {
    assert.deepEqual([lock.scope, lock.mode], [[name], 'shared']);
    await quiet();
    assert.equal(await available(name), false);
    return 'result';
  }, { mode: 'shared' });
  assert.equal(result, 'result');
  assert.equal(await available(name), true);
  const reason = new Error('thrown');
  assert.equal(await rejection(requestLock(name, () => { throw reason; })), reason);
  assert.equal(await available(name), true);
  assert.equal(await rejection(requestLock(name, () => {}, { signal: AbortSignal.abort(reason) })), reason);
});

test('X25 each release model can be made from another', async () => {
  const models = {
    explicitFromAuto: async (...given) => {
      const lock = await requestLock(...given);
      const { promise, resolve } = deferred();
      lock.waitUntil(promise);
      return { release: resolve, released: lock.released };
    },
    explicitFromScoped: (scope, ...rest) =>
      new Promise((resolve, reject) => {
        const { promise, resolve: release } = deferred();
        const released = requestLock(scope, (lock) => {
          resolve({ release, released, lock });
          return promise;
        }, ...rest);
        released.catch(reject);
      }),
  };
  for (const [model, request] of Object.entries(models)) {
    const name = unique();
    const lock = await request(name);
    await quiet();
    assert.equal(await available(name), false, model);
    lock.release();
    await lock.released;
    assert.equal(await available(name), true, model);
    assert.equal((await rejection(request(name, { signal: AbortSignal.abort() }))).name, 'AbortError', model);
  }
  const scopedFromExplicit = async (scope, callback, ...rest) => {
    const lock = await requestExplicitLock(scope, ...rest);
    try {
      return await callback(lock);
    } finally {
      lock.release();
    }
  };
  const name = unique();
  assert.equal(await scopedFromExplicit(name, async () => ((await available(name)) ? 'free' : 'held')), 'held');
  assert.equal(await available(name), true);
  // Auto-release from explicit: the promises that it was given, then release.
  const explicit = await requestExplicitLock(name);
  const work = deferred();
  const released = Promise.all([work.promise]).then(() => explicit.release());
  assert.equal(await available(name), false);
  work.resolve();
  assert.equal(await released, true);
  assert.equal(await available(name), true);
});

test('X26 X28 exclusive and waiting are the defaults; a miss gives null in every model', async () => {
  const name = unique();
  const lock = await requestExplicitLock(name);
  assert.equal(lock.mode, 'exclusive');
  const options = { ifAvailable: true };
  assert.equal(await requestLock(name, options), null);
  assert.equal(await requestExplicitLock(name, options), null);
  assert.equal(await requestLock(name, (given) => given, options), null);
  const waiting = requestLock(name);
  lock.release();
  assert.ok(await waiting);
});

test('X27 a timer on a signal ends a wait with AbortError', async () => {
  const name = unique();
  const lock = await requestExplicitLock(name);
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 20);
  assert.equal((await rejection(requestLock(name, () => {}, { signal: controller.signal }))).name, 'AbortError');
  lock.release();
});

test('X31 X32 a lock around a transaction, a transaction around a lock', async () => {
  const name = unique();
  const transaction = deferred();
  const lock = await requestLock(name);
  lock.waitUntil(transaction.promise);
  await quiet();
  assert.equal(await available(name), false);
  transaction.resolve();
  await lock.released;
  assert.equal(await available(name), true);
  let active = true;
  const inner = await requestExplicitLock(name);
  inner.released.then(() => {
    active = false;
  });
  await quiet();
  assert.equal(active, true);
  inner.release();
  await quiet();
  assert.equal(active, false);
});

test('X33 X34 X39 transactions: readers of a store overlap, writers take turns in the order of creation', async () => {
  const database = unique();
  const log = [];
  let readers = 0;
  let overlapped = false;
  // A readonly transaction is shared, a readwrite one exclusive.
  const transaction = (mode, stores, work) =>
    requestLock(stores.map((store) => `${database}/${store}`), work, { mode: mode === 'readonly' ? 'shared' : 'exclusive' });
  const read = (label) => async () => {
    readers++;
    overlapped ||= readers > 1;
    await quiet();
    log.push(label);
    readers--;
  };
  const write = (label) => async () => {
    assert.equal(readers, 0);
    await quiet();
    log.push(label);
  };
  await Promise.all([
    transaction('readonly', ['a'], read('r1')),
    transaction('readonly', ['a', 'b'], read('r2')),
    transaction('readwrite', ['b'], write('w1')),
    transaction('readwrite', ['a', 'b'], write('w2')),
    transaction('readonly', ['b'], read('r3')),
  ]);
  assert.ok(overlapped);
  assert.deepEqual(log, ['r1', 'r2', 'w1', 'w2', 'r3']);
});

test('X35 a reader that comes after a waiting writer waits', async () => {
  const name = unique();
  const reader = await requestExplicitLock(name, { mode: 'shared' });
  const writer = requestExplicitLock(name);
  assert.equal(await requestLock(name, { mode: 'shared', ifAvailable: true }), null);
  reader.release();
  (await writer).release();
});
