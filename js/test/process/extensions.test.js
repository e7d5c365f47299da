// The extensions of the package: the cases of test/conformance/extensions in threads and through a
// service, and behaviours of Node alone.

import assert from 'node:assert/strict';
import { channel } from 'node:diagnostics_channel';
import { getEventListeners, once } from 'node:events';
import { describe, test } from 'node:test';
import vm from 'node:vm';
import { Worker } from 'node:worker_threads';
import { install, LockManager, locks } from 'navlocks';
import { runCase } from '../conformance/bench.js';
import { casesFor } from '../conformance/cases.js';
import { loadProvider, throughService } from '../support/threads.js';

let counter = 0;
const unique = () => `extension ${++counter}`;

async function rejection(promise) {
  return promise.then(
    (value) => assert.fail(`fulfilled with ${value}`),
    (error) => error,
  );
}

for (const providerName of ['navlocks', 'strict-realm', ...throughService]) {
  const provider = await loadProvider(providerName);
  describe(providerName, () => {
    for (const testCase of casesFor(provider, 'extensions')) test(`${testCase.id} ${testCase.title}`, () => runCase(testCase, provider));
  });
}

test("the extensions' cases pass in a worker thread", async () => {
  const workerData = { providerName: 'navlocks', body: 'extensions' };
  const worker = new Worker(new URL('../support/conformance-runner.js', import.meta.url), { workerData });
  const results = [];
  worker.on('message', (result) => results.push(result));
  assert.deepEqual(await once(worker, 'exit'), [0]);
  assert.deepEqual(results.filter(({ passed }) => !passed), []);
  assert.ok(results.length > 20, `only ${results.length} cases`);
});

test('F81 a grant removes its request from the signal, and one listener serves all requests', async () => {
  const name = unique();
  const controller = new AbortController();
  const { signal } = controller;
  const listeners = () => getEventListeners(signal, 'abort').length;
  const held = await locks.hold(name, { signal });
  assert.equal(listeners(), 0);
  const waiting = [1, 2, 3].map(() => rejection(locks.hold(name, { signal })));
  assert.equal(listeners(), 1);
  controller.abort('enough');
  assert.deepEqual(await Promise.all(waiting), Array(3).fill('enough'));
  assert.equal(listeners(), 0);
  held.release();
});

test('F84 F86 a request that is aborted in its task holds the lock until its callback would run', async () => {
  const name = unique();
  const controller = new AbortController();
  let called = false;
  const first = rejection(locks.request(name, { signal: controller.signal }, () => { called = true; }));
  controller.abort('enough');
  const second = locks.request(name, { ifAvailable: true }, (lock) => lock);
  const third = locks.request(name, (lock) => lock.name);
  assert.deepEqual([await first, await second, await third], ['enough', null, name]);
  assert.equal(called, false);
  const { held, pending } = await locks.query();
  assert.deepEqual([...held, ...pending].filter((info) => info.name === name), []);
});

test('F05 the standard object has no scopes, and reads no other options', async () => {
  const context = vm.createContext({});
  assert.throws(() => install(context), TypeError);
  const standard = install(vm.runInContext('globalThis', context));
  assert.equal(await standard.request(['a', 'b'], (lock) => lock.name), 'a,b');
  assert.deepEqual(await standard.request(['a', 'b'], ({ scope, signal, fencingToken }) => [scope, signal, fencingToken]), [undefined, undefined, undefined]);
  const read = [];
  const options = new Proxy({}, { get: (_, member) => void read.push(member) });
  await standard.request('a', options, () => {});
  assert.deepEqual(read, ['ifAvailable', 'mode', 'signal', 'steal']);
});

test('errors and promises belong to the realm of the installed manager', async () => {
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
  const own = await vm.runInContext(
    `navigator.locks.request('realm', async () => {
      const snapshot = await navigator.locks.query();
      const row = snapshot.held.find(({ name }) => name === 'realm');
      return [snapshot instanceof Object, snapshot.held instanceof Array, snapshot.pending instanceof Array, row instanceof Object];
    })`,
    context,
  );
  assert.deepEqual([...own], [true, true, true, true]);
  assert.notEqual(vm.runInContext('LockManager', context), LockManager);
});

test('diagnostics channels publish the messages of Node', async () => {
  const name = unique();
  const messages = [];
  const parts = ['start', 'grant', 'miss', 'end'];
  const listeners = parts.map((part) => {
    const listener = (message) => messages.push([part, message]);
    channel(`locks.request.${part}`).subscribe(listener);
    return () => channel(`locks.request.${part}`).unsubscribe(listener);
  });
  const error = new Error('thrown');
  const facts = { name, mode: 'exclusive' };
  await locks.request(name, () => locks.request(name, { ifAvailable: true }, () => {}));
  await rejection(locks.request(name, () => { throw error; }));
  for (const stop of listeners) stop();
  await locks.request(name, () => {});
  assert.deepEqual(messages, [
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

test('names of 64 KiB and more work in a process, and come back unchanged', async () => {
  for (const name of ['x'.repeat(65_536), '\0'.repeat(65_536), '\ud800'.repeat(65_536), 'x'.repeat(2 ** 20)]) {
    const seen = await locks.request(name, async (lock) => [lock.name === name, (await locks.query()).held.some((held) => held.name === name)]);
    assert.deepEqual(seen, [true, true]);
    assert.equal(await locks.request([name, 'more'], { ifAvailable: true }, (lock) => lock.scope.includes(name)), true);
  }
});
