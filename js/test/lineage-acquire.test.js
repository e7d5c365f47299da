// acquire, forceRelease and query: the document of December 2017.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { acquire, forceRelease, query, requestExplicitLock, requestLock } from 'navlocks/lineage';
import { startClient } from './threads.js';
import { about, acquired, available, quiet, rejection, unique } from './lineage-tools.js';

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
