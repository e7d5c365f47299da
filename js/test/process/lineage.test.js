// The older drafts in threads and through a service, and behaviours of Node alone.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { getEventListeners, once } from 'node:events';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import vm from 'node:vm';
import { Worker } from 'node:worker_threads';
import { connect, install, locks } from 'navlocks';
import * as direct from 'navlocks/lineage';
import { runCase } from '../conformance/bench.js';
import { casesFor } from '../conformance/cases.js';
import { Proxy } from '../support/proxy.js';
import { Service } from '../support/service.js';
import { loadProvider, throughService } from '../support/threads.js';

for (const providerName of ['lineage', 'strict-realm', ...throughService]) {
  const provider = await loadProvider(providerName);
  describe(providerName, () => {
    for (const testCase of casesFor(provider, 'lineage')) test(`${testCase.id} ${testCase.title}`, () => runCase(testCase, provider));
  });
}

test("the older drafts' cases pass in a worker thread", async () => {
  const workerData = { providerName: 'lineage', body: 'lineage' };
  const worker = new Worker(new URL('../support/conformance-runner.js', import.meta.url), { workerData });
  const results = [];
  worker.on('message', (result) => results.push(result));
  assert.deepEqual(await once(worker, 'exit'), [0]);
  assert.deepEqual(results.filter(({ passed }) => !passed), []);
  assert.ok(results.length > 50, `only ${results.length} cases`);
});

test('P15 a request listens to its signal until its end', async () => {
  const { signal } = new AbortController();
  const listeners = () => getEventListeners(signal, 'abort').length;
  await direct.acquire('listened', { signal }, () => assert.equal(listeners(), 1));
  assert.equal(listeners(), 0);
});

test('Q16 an unhandled failure of the work ends the process like every unhandled rejection', async () => {
  const program = `
    import { requestLock } from ${JSON.stringify(import.meta.resolve('navlocks/lineage'))};
    const lock = await requestLock('failing');
    lock.waitUntil(Promise.reject(new Error('the work failed')));
    setTimeout(() => console.log('still alive'), 1000);
  `;
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
  await assert.rejects(run, ({ code, stdout, stderr }) => code === 1 && stdout === '' && stderr.includes('the work failed'));
});

for (const [cause, end] of Object.entries({
  ClientEnded: ({ connection }) => connection.close(),
  LeaseLapsed: ({ proxy }) => proxy.silence(),
})) {
  test(`Q21 a lock lost by ${cause}: its promises reject and its signal aborts, with the cause`, async (t) => {
    const service = await Service.start(['--lease', '2s']);
    t.after(() => service.kill());
    const proxy = await Proxy.start(service.tcp);
    // Held locks do not keep a process alive.
    const alive = setInterval(() => {}, 1000);
    t.after(() => clearInterval(alive));
    const connection = await connect(proxy.url);
    t.after(() => connection.close());
    const { acquire, auto, explicit, requestFlag, scoped } = direct.lineageOf(connection);
    const never = new Promise(() => {});
    const flag = await requestFlag('flag', 'shared');
    flag.waitUntil(never);
    const lock = await auto.requestLock(['a', 'b']);
    lock.waitUntil(never);
    const held = await explicit.requestLock('c');
    const { signal } = held;
    const lost = [acquire('d', () => never), scoped.requestLock('e', () => never), flag.released, lock.released, held.released];
    await connection.query();
    const reasons = Promise.allSettled(lost);
    await end({ connection, proxy });
    for (const { reason } of await reasons) assert.deepEqual([reason.name, reason.cause], ['AbortError', cause]);
    assert.deepEqual([signal.aborted, signal.reason.cause, held.release()], [true, cause, false]);
  });
}

test('the direct exports are the lineage of this process', () => {
  const lineage = direct.lineageOf(locks);
  assert.equal(direct.lineageOf(locks), lineage);
  for (const [name, value] of Object.entries(lineage)) assert.equal(direct[name], value, name);
});

test('lineageOf() refuses foreign locks, and its error says what to pass', () => {
  for (const wrong of [undefined, null, {}, { request() {} }]) assert.throws(() => direct.lineageOf(wrong), { name: 'TypeError', message: /connect\(\)/ });
});

test('P01 installLineage() defines a missing navigator.locks, and errors belong to that realm', async () => {
  const context = vm.createContext({ DOMException, AbortController, AbortSignal });
  const target = vm.runInContext('globalThis', context);
  direct.installLineage(target, install(target));
  const names = await vm.runInContext(`(async () => {
    const promise = navigator.locks.acquire('realm');
    const error = await promise.catch((error) => error);
    const lock = await requestLock('realm');
    await lock.released;
    const late = await lock.waitUntil(1).catch((error) => error);
    return [promise instanceof Promise, error instanceof TypeError, lock.released instanceof Promise, late instanceof TypeError];
  })()`, context);
  assert.deepEqual([...names], [true, true, true, true]);
  const bare = { Object, Promise, TypeError };
  direct.installLineage(bare, locks);
  assert.equal(await bare.navigator.locks.acquire('bare', (lock) => lock.name), 'bare');
  assert.equal(await bare.navigator.locks.request('bare', (lock) => lock.name), 'bare');
});
