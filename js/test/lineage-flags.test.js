// requestFlag with a timeout.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { locks } from 'navlocks';
import { Flag, requestExplicitLock, requestFlag } from 'navlocks/lineage';
import { Dice } from './dice.js';
import { about, quiet, rejection, unique } from './lineage-tools.js';

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
