// What the package adds to the standard.

import assert from 'node:assert/strict';
import { channel } from 'node:diagnostics_channel';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import vm from 'node:vm';
import { install, Lock, LockHandle, LockManager, locks } from 'navlocks';
import { startClient } from './threads.js';

let counter = 0;
const unique = () => `extension ${++counter}`;

async function rejection(promise) {
  return promise.then(
    (value) => assert.fail(`fulfilled with ${value}`),
    (error) => error,
  );
}

test('Q02 an array of names is a scope: sorted, without duplicates, frozen', async () => {
  await locks.request(['b', 'a', 'b'], (lock) => {
    assert.deepEqual(lock.scope, ['a', 'b']);
    assert.ok(Object.isFrozen(lock.scope));
    assert.equal(lock.name, 'a,b');
  });
  await locks.request(['one'], (lock) => assert.deepEqual(lock.scope, ['one']));
});

test('Q04 an empty scope is refused', async () => {
  assert.equal((await rejection(locks.request([], () => {}))).name, 'TypeError');
  assert.equal((await rejection(locks.hold([]))).name, 'TypeError');
});

test('F03 a reserved name is refused anywhere in a scope', async () => {
  assert.equal((await rejection(locks.request(['a', '-b'], () => {}))).name, 'NotSupportedError');
});

test('Q06 Q07 a scope is granted whole, and keeps its place on each name meanwhile', async () => {
  const [a, b] = [unique(), unique()];
  const first = await locks.hold(a);
  const order = [];
  const both = locks.request([a, b], () => order.push('both'));
  const behind = locks.request(b, () => order.push('behind'));
  await locks.request(unique(), () => {});
  assert.deepEqual(order, []);
  first.release();
  await Promise.all([both, behind]);
  assert.deepEqual(order, ['both', 'behind']);
});

test('F05 the standard object knows no scopes, and reads no further options', async () => {
  const context = vm.createContext({});
  assert.throws(() => install(context), TypeError);
  const standard = install(vm.runInContext('globalThis', context));
  assert.equal(await standard.request(['a', 'b'], (lock) => lock.name), 'a,b');
  assert.deepEqual(await standard.request(['a', 'b'], (lock) => lock.scope), ['a,b']);
  const read = [];
  const options = new Proxy({}, { get: (_, member) => void read.push(member) });
  await standard.request('a', options, () => {});
  assert.deepEqual(read, ['ifAvailable', 'mode', 'signal', 'steal']);
});

test('errors and promises are of the realm that the manager was installed in', async () => {
  const context = vm.createContext({ DOMException });
  install(vm.runInContext('globalThis', context));
  const [promise, error] = await vm.runInContext(
    `(async () => {
      const promise = navigator.locks.request();
      try { await promise; } catch (error) { return [promise instanceof Promise, error instanceof TypeError]; }
    })()`,
    context,
  );
  assert.deepEqual([promise, error], [true, true]);
  assert.ok(vm.runInContext('navigator.locks instanceof LockManager', context));
  assert.notEqual(vm.runInContext('LockManager', context), LockManager);
});

test('D09 a timeout rejects with TimeoutError, leaves the queue, and lets followers go', async () => {
  const name = unique();
  const reader = await locks.hold(name, { mode: 'shared' });
  const writer = locks.hold(name, { timeout: 20 });
  const follower = locks.hold(name, { mode: 'shared' });
  const error = await rejection(writer);
  assert.equal(error.name, 'TimeoutError');
  assert.ok(error instanceof DOMException);
  assert.match(error.message, /not free within 20 ms/);
  assert.ok((await follower).held);
  reader.release();
  (await follower).release();
});

test('T05 a timeout of zero tries once and is never queued', async () => {
  const name = unique();
  assert.equal(await locks.request(name, { timeout: 0 }, () => 'free'), 'free');
  const held = await locks.hold(name);
  const tried = locks.hold(name, { timeout: 0 });
  assert.deepEqual((await locks.query()).pending, []);
  assert.equal((await rejection(tried)).name, 'TimeoutError');
  held.release();
});

test('D09 a timeout that is no time is a TypeError, one that never ends is none', async () => {
  for (const timeout of [-1, NaN, 'soon', {}]) {
    assert.equal((await rejection(locks.hold(unique(), { timeout }))).name, 'TypeError');
  }
  for (const timeout of [Infinity, 2 ** 40, '10']) (await locks.hold(unique(), { timeout })).release();
  for (const options of [{ steal: true }, { ifAvailable: true }]) {
    assert.equal((await rejection(locks.hold(unique(), { timeout: 1, ...options }))).name, 'NotSupportedError');
  }
});

test('T06 a grant stops the clock', async () => {
  const name = unique();
  const value = await locks.request(name, { timeout: 5 }, () => new Promise((resolve) => setTimeout(resolve, 30, 'kept')));
  assert.equal(value, 'kept');
});

test('a timeout longer than a timer lasts does not fire at once', async () => {
  const name = unique();
  const held = await locks.hold(name);
  const patient = locks.hold(name, { timeout: 2 ** 40 });
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal((await locks.inspect()).pending.length, 1);
  held.release();
  (await patient).release();
});

test('decision 1 lock.signal aborts when the lock is lost, with the cause', async () => {
  const name = unique();
  const held = await locks.hold(name);
  const { signal } = held;
  assert.equal(signal, held.signal);
  assert.equal(signal.aborted, false);
  const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
  const thief = await locks.hold(name, { steal: true });
  await aborted;
  assert.equal(signal.reason.name, 'AbortError');
  assert.equal(signal.reason.cause, 'Stolen');
  assert.match(signal.reason.message, /stole it/);
  assert.deepEqual([held.held, held.release(), thief.held, thief.release()], [false, false, true, true]);
});

test('decision 1 a handle that would be lost already is an error instead', async () => {
  const name = unique();
  const victim = locks.hold(name);
  const thief = locks.hold(name, { steal: true });
  assert.equal((await rejection(victim)).cause, 'Stolen');
  assert.ok((await thief).release());
});

test('decision 3 a second release does nothing and says so', async () => {
  const name = unique();
  const held = await locks.hold(name);
  const next = locks.hold(name);
  assert.deepEqual([held.release(), held.release()], [true, false]);
  const { held: stillHeld } = await next;
  assert.ok(stillHeld);
  (await next).release();
});

test('decision 4 forceRelease takes all holders of a name in one step, and tells them', async () => {
  const name = unique();
  const readers = await Promise.all([1, 2].map(() => locks.hold(name, { mode: 'shared' })));
  const scoped = await locks.hold([name, unique()], { mode: 'shared' });
  const writer = locks.hold(name);
  assert.equal(await locks.forceRelease(name), 3);
  assert.ok((await writer).held);
  for (const reader of [...readers, scoped]) {
    assert.equal(reader.held, false);
    assert.equal(reader.signal.reason.cause, 'ForceReleased');
  }
  (await writer).release();
  assert.equal(await locks.forceRelease(name), 0);
});

test('decision 5 a steal with a scope takes every lock that it intersects', async () => {
  const [a, b, c] = [unique(), unique(), unique()];
  const victims = [await locks.hold([a, b]), await locks.hold(c)];
  const thief = await locks.hold([b, c], { steal: true });
  assert.ok(await locks.request(a, { ifAvailable: true }, (lock) => lock !== null));
  assert.deepEqual(victims.map(({ held }) => held), [false, false]);
  thief.release();
});

test('fencing tokens grow from grant to grant, across threads', async () => {
  const name = unique();
  const tokens = [];
  for (let count = 0; count < 3; count++) await locks.request(name, (lock) => tokens.push(lock.fencingToken));
  const other = await startClient('navlocks');
  await (await other.hold(name)).release();
  await locks.request(name, (lock) => tokens.push(lock.fencingToken));
  await other.end();
  assert.deepEqual([...tokens].sort((one, two) => one - two), tokens);
  assert.equal(new Set(tokens).size, tokens.length);
  assert.ok(tokens[3] - tokens[2] > 1);
});

test('a handle is a Lock that can be disposed of', async () => {
  const name = unique();
  const handle = await locks.hold(name);
  assert.ok(handle instanceof Lock && handle instanceof LockHandle);
  handle[Symbol.dispose]();
  assert.equal(handle.held, false);
  const again = await locks.hold(name);
  await again[Symbol.asyncDispose]();
  assert.equal(await locks.request(name, { ifAvailable: true }, (lock) => lock !== null), true);
  assert.equal(await locks.hold(name, { ifAvailable: true }).then((free) => free.release()), true);
});

test('X28 hold gives null when the lock is not available', async () => {
  const name = unique();
  const held = await locks.hold(name);
  assert.equal(await locks.hold(name, { ifAvailable: true }), null);
  held.release();
});

test('F81 a signal aborts a hold that waits, and a grant stops listening', async () => {
  const name = unique();
  const controller = new AbortController();
  const { signal } = controller;
  const held = await locks.hold(name, { signal });
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  const waiting = [1, 2, 3].map(() => locks.hold(name, { signal }));
  assert.equal(getEventListeners(signal, 'abort').length, 1);
  controller.abort('enough');
  for (const one of waiting) assert.equal(await rejection(one), 'enough');
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  held.release();
});

test('X36 a shared request overtakes waiting writers only if told to', async () => {
  const name = unique();
  const reader = await locks.hold(name, { mode: 'shared' });
  const writer = locks.hold(name);
  assert.equal(await locks.hold(name, { mode: 'shared', ifAvailable: true }), null);
  const overtaker = await locks.hold(name, { mode: 'shared', overtake: true });
  overtaker.release();
  reader.release();
  (await writer).release();
  for (const options of [{}, { mode: 'shared', ifAvailable: true }]) {
    assert.equal((await rejection(locks.hold(name, { overtake: true, ...options }))).name, 'NotSupportedError');
  }
});

test('inspect tells id, scope, client, tag and since when', async () => {
  const name = unique();
  const start = Date.now() - 100;
  const held = await locks.hold([`${name} a`, `${name} b`], { tag: 'nightly import' });
  const waiting = locks.hold(`${name} a`, { mode: 'shared' });
  const snapshot = await locks.inspect();
  const [lock] = snapshot.held.filter(({ scope }) => scope[0] === `${name} a`);
  const [request] = snapshot.pending.filter(({ scope }) => scope[0] === `${name} a`);
  assert.deepEqual(lock.scope, [`${name} a`, `${name} b`]);
  assert.deepEqual([lock.tag, lock.mode, lock.clientId, lock.fencingToken], ['nightly import', 'exclusive', locks.clientId, held.fencingToken]);
  assert.ok(lock.since >= start && lock.since <= Date.now() + 100, `since ${lock.since}`);
  assert.deepEqual([request.tag, request.mode, 'fencingToken' in request], [undefined, 'shared', false]);
  assert.deepEqual(await locks.blockers(request.id), { held: [lock.id], pending: [] });
  assert.deepEqual(await locks.blockers(lock.id), { held: [], pending: [] });
  assert.deepEqual((await locks.query()).held.map((info) => info.name).slice(-2), [`${name} a`, `${name} b`]);
  held.release();
  (await waiting).release();
  assert.deepEqual((await locks.inspect()).held.filter(({ tag }) => tag !== undefined), []);
});

test('F115 deadlocks are found, across threads', async () => {
  const [a, b] = [unique(), unique()];
  const other = await startClient('navlocks');
  const mine = await locks.hold(a);
  await other.hold(b);
  await other.ask(a);
  const wanted = locks.hold(b, { signal: AbortSignal.timeout(10_000) });
  const [deadlock] = await locks.deadlocks();
  assert.equal(deadlock.ids.length, 4);
  assert.ok(deadlock.clients.includes(locks.clientId));
  assert.equal(deadlock.clients.length, 2);
  await other.kill();
  (await wanted).release();
  mine.release();
  assert.deepEqual(await locks.deadlocks(), []);
});

test('X37 F133 partitions share nothing', async () => {
  const name = unique();
  const [one, two] = [locks.partition('one'), locks.partition('two')];
  assert.equal(locks.partition('one'), one);
  const held = [await one.hold(name), await two.hold(name), await locks.hold(name)];
  assert.equal((await one.query()).held.length, 1);
  assert.equal(await one.hold(name, { ifAvailable: true }), null);
  assert.equal((await one.query()).held[0].clientId, locks.clientId);
  for (const handle of held) handle.release();
});

test('diagnostics channels speak as those of Node', async () => {
  const name = unique();
  const heard = [];
  const parts = ['start', 'grant', 'miss', 'end'];
  const listeners = parts.map((part) => {
    const listener = (message) => heard.push([part, message]);
    channel(`locks.request.${part}`).subscribe(listener);
    return () => channel(`locks.request.${part}`).unsubscribe(listener);
  });
  const error = new Error('thrown');
  const facts = { name, mode: 'exclusive' };
  await locks.request(name, () => locks.request(name, { ifAvailable: true }, () => {}));
  await rejection(locks.request(name, () => { throw error; }));
  for (const stop of listeners) stop();
  await locks.request(name, () => {});
  assert.deepEqual(heard, [
    ['start', facts],
    ['grant', facts],
    ['start', facts],
    ['miss', facts],
    ['end', { ...facts, ifAvailable: true, steal: false, error: undefined }],
    ['end', { ...facts, ifAvailable: false, steal: false, error: undefined }],
    ['start', facts],
    ['grant', facts],
    ['end', { ...facts, ifAvailable: false, steal: false, error }],
  ]);
});
