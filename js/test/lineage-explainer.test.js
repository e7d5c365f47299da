// The explainer: its example, its three release models, its transactions.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { locks } from 'navlocks';
import { requestExplicitLock, requestLock } from 'navlocks/lineage';
import { available, deferred, quiet, rejection, unique } from './lineage-tools.js';

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
  assert.equal((await rejection(careful())).message, 'remembered');
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

/** The adapters as the explainer writes them, over the model that they are made from. */
const adapters = {
  'explicit from auto': (requestLock) =>
    async function requestExplicitLock(...args) {
      const lock = await requestLock(...args);
      lock.waitUntil(new Promise((resolve) => { lock.release = resolve; }));
      return lock;
    },

  'explicit from scoped': (requestLock) =>
    function requestExplicitLock(scope, ...rest) {
      return new Promise((resolve) => {
        requestLock(scope, (lock) => {
          // p waits until lock.release() is called
          const p = new Promise((r) => { lock.release = r; });
          resolve(lock);
          return p;
        }, ...rest);
      });
    },
};

for (const [model, adapt] of Object.entries(adapters)) {
  test(`X25 ${model}, as the explainer writes it: the member that replaces release() releases`, async () => {
    const name = unique();
    const lock = await adapt(requestLock)(name);
    await quiet();
    assert.equal(await available(name), false);
    lock.release();
    await lock.released;
    assert.equal(await available(name), true);
  });
}

test('X24 a stolen lock of the callback form: its promise rejects with the cause, and nothing is unhandled', async (t) => {
  const unhandled = t.mock.fn();
  process.on('unhandledRejection', unhandled);
  t.after(() => process.off('unhandledRejection', unhandled));
  const name = unique();
  const work = deferred();
  let given;
  const lost = rejection(requestLock(name, (lock) => {
    given = lock;
    return work.promise;
  }));
  await quiet();
  await locks.request(name, { steal: true }, () => {});
  const error = await lost;
  assert.deepEqual([error.name, error.cause], ['AbortError', 'Stolen']);
  assert.equal(await rejection(given.released), error);
  work.resolve();
  // Those that release themselves, and those that are held until told, with nobody who looks at `released`.
  const explicit = await requestExplicitLock(unique());
  const auto = await requestLock(unique());
  auto.waitUntil(new Promise(() => {}));
  for (const { scope } of [auto, explicit]) await locks.request(scope[0], { steal: true }, () => {});
  await quiet();
  assert.equal(unhandled.mock.callCount(), 0);
});

test('X25 auto from explicit, as the explainer writes it', async () => {
  function Extendable() {
    let resolve, reject;
    const promise = new Promise((res, rej) => {
      resolve = res;
      reject = rej;
    });
    let ps;
    promise.waitUntil = function waitUntil(p) {
      ps = ps ? Promise.all([ps, p]) : p;
      const snapshot = ps;
      ps.then(
        () => { if (snapshot === ps) resolve(); },
        (err) => { if (snapshot === ps) reject(err); },
      );
    };
    return promise;
  }
  async function requestAutoReleaseLock(...args) {
    const lock = await requestExplicitLock(...args);
    const ext = Extendable();
    ext.then(() => lock.release(), () => lock.release());
    ext.waitUntil(Promise.resolve().then(() => Promise.resolve().then()));
    lock.waitUntil = ext.waitUntil.bind(ext);
    return lock;
  }
  const name = unique();
  const work = deferred();
  const lock = await requestAutoReleaseLock(name);
  lock.waitUntil(work.promise);
  await quiet();
  assert.equal(await available(name), false);
  work.resolve();
  await lock.released;
  assert.equal(await available(name), true);
  await (await requestAutoReleaseLock(name)).released;
  assert.equal(await available(name), true);
});

test('X25 scoped from explicit, as the explainer writes it', async () => {
  async function requestScopedLock(scope, callback, ...rest) {
    const lock = await requestExplicitLock(scope, ...rest);
    try {
      await callback(lock);
    } finally {
      lock.release();
    }
  }
  const name = unique();
  let free;
  await requestScopedLock(name, async () => { free = await available(name); });
  assert.equal(free, false);
  assert.equal(await available(name), true);
  await rejection(requestScopedLock(name, () => { throw new Error('thrown'); }));
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
