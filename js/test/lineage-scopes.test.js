// requestLock with scopes and waitUntil.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Lock, requestExplicitLock, requestFlag, requestLock } from 'navlocks/lineage';
import { about, available, deferred, quiet, rejection, unique } from './lineage-tools.js';

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
