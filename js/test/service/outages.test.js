// Outages of the service or the network: which locks and requests survive, and when clients know.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from 'navlocks';
import { becomes, fails, lost } from '../support/outcomes.js';
import { Proxy } from '../support/proxy.js';
import { Service } from '../support/service.js';

/** Long enough for a busy machine, short enough to wait for. */
const LEASE_MS = 2000;

test('after a pause beyond the lease the first read of a lock reports the loss', async () => {
  const service = await Service.start();
  const locks = await connect(service.tcp, { lease: LEASE_MS });
  const handle = await locks.hold('handle');
  const causes = [];
  const signals = [handle.signal];
  handle.signal.addEventListener('abort', () => causes.push(handle.signal.reason.cause));
  const error = await fails(locks.request('callback', (lock) => {
    signals.push(lock.signal);
    assert.deepEqual([lock.held, lock.signal.aborted], [true, false]);
    // Blocks the thread like a stopped process: no timer runs.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LEASE_MS);
    for (const { signal, held } of [lock, handle]) {
      assert.deepEqual([signal.aborted, signal.reason?.cause, held], [true, 'LeaseLapsed', false]);
      assert.ok(signals.includes(signal));
    }
    assert.equal(handle.release(), false);
  }), 'AbortError');
  assert.equal(error.cause, 'LeaseLapsed');
  assert.deepEqual(causes, ['LeaseLapsed']);
  await locks.close();
  await service.kill();
});

test('a broken connection is replaced, and locks, requests and queries continue', async () => {
  const service = await Service.start(['--lease', '60s']);
  const proxy = await Proxy.start(service.tcp);
  const [locks, other] = await Promise.all([connect(proxy.url), connect(service.unix)]);
  const id = locks.clientId;
  const elsewhere = locks.partition('elsewhere');
  const held = await locks.hold('a');
  const theirs = await other.hold('b');
  const order = [];
  const waiting = [];
  for (const [number, client] of [locks, other, locks].entries()) {
    waiting.push(client.request('b', () => order.push(number)));
    await client.query();
  }
  const controller = new AbortController();
  const aborted = fails(locks.request('b', { signal: controller.signal }, () => {}), 'AbortError');
  await locks.query();

  for (let round = 0; round < 3; round++) {
    proxy.cut();
    // Requested without a connection.
    const question = locks.query();
    const fresh = elsewhere.request(`fresh ${round}`, () => 'granted');
    const known = await locks.hold(`known ${round}`);
    known.release();
    assert.deepEqual((await question).held.slice(0, 2).map(({ name }) => name), ['a', 'b']);
    assert.equal(await fresh, 'granted');
    assert.equal(locks.clientId, id);
    assert.ok(held.held);
  }
  proxy.cut();
  controller.abort();
  await aborted;
  theirs.release();
  await Promise.all(waiting);
  assert.deepEqual(order, [0, 1, 2]);
  const again = await other.request('a', { ifAvailable: true }, (lock) => lock);
  assert.equal(again, null);
  proxy.cut();
  assert.ok(held.release());
  assert.equal(await other.request('a', (lock) => lock.fencingToken > held.fencingToken), true);
  assert.deepEqual(await other.query(), { held: [], pending: [] });
  await Promise.all([locks.close(), other.close()]);
  await service.kill();
});

test('a session moves to another connection when one is silent for half of its lease', async () => {
  const service = await Service.start(['--lease', `${LEASE_MS}ms`]);
  const proxy = await Proxy.start(service.tcp);
  const locks = await connect(proxy.url);
  const id = locks.clientId;
  const held = await locks.hold('a');
  for (let round = 0; round < 2; round++) {
    proxy.swallow();
    // The next connection answers.
    const { held: known } = await locks.query();
    assert.deepEqual(known.map(({ name }) => name), ['a']);
    assert.equal(locks.clientId, id);
    assert.ok(held.held);
  }
  held.release();
  await locks.close();
});

test('decision 2: locks are lost if the service is down beyond the lease, and waiters are queued again', async () => {
  const service = await Service.start(['--lease', `${LEASE_MS}ms`]);
  const locks = await connect(service.tcp);
  const held = await locks.hold('a');
  const scoped = fails(locks.request('b', () => new Promise(() => {})), 'AbortError');
  const waiting = locks.hold('a');
  await locks.query();
  await service.kill();
  assert.equal(await lost(held), 'LeaseLapsed');
  assert.equal((await scoped).cause, 'LeaseLapsed');
  await service.start();
  const next = await waiting;
  assert.ok(next.fencingToken > held.fencingToken);
  assert.deepEqual((await locks.query()).held.map(({ name }) => name), ['a']);
  await locks.close();
  await service.kill();
});

test('F134 a service that is stopped and restarted knows the locks that their holders claim', async () => {
  const service = await Service.start(['--lease', '60s']);
  const locks = await connect(service.tcp);
  const held = await locks.hold('a');
  const released = await locks.hold('b');
  await service.kill('SIGTERM');
  await becomes(locks, 'unreachable');
  assert.deepEqual([held.held, held.signal.aborted], [true, false]);
  assert.ok(released.release());
  const later = locks.request('b', () => 'granted');
  const question = locks.query();
  await service.start();
  assert.equal(await later, 'granted');
  assert.equal((await question).held[0].name, 'a');
  assert.ok(held.release());
  await locks.close();
  await service.kill();
});

test('F125 a disconnected client loses its locks before another client is granted them', async () => {
  const service = await Service.start(['--lease', `${LEASE_MS}ms`]);
  const proxy = await Proxy.start(service.tcp);
  const [cut, other] = await Promise.all([connect(proxy.url), connect(service.unix)]);
  for (let round = 0; round < 2; round++) {
    const held = await cut.hold('a');
    const waits = cut.request('b', () => 'back');
    const order = [];
    const next = other.request('a', () => order.push('granted'));
    proxy.silence();
    await lost(held).then(() => order.push(held.signal.reason.cause));
    await next;
    assert.deepEqual(order, ['LeaseLapsed', 'granted']);
    assert.equal(held.release(), false);
    proxy.speak();
    assert.equal(await waits, 'back');
    assert.equal(await cut.request('a', () => 'granted'), 'granted');
  }
  await Promise.all([cut.close(), other.close()]);
  await service.kill();
});

test('F125 a silent client loses its locks before one with a lease that is four times as long', async () => {
  const service = await Service.start(['--lease-max', '60s']);
  const proxy = await Proxy.start(service.tcp);
  const [brief, patient, other] = await Promise.all([
    connect(proxy.url, { lease: LEASE_MS }),
    connect(proxy.url, { lease: 4 * LEASE_MS }),
    connect(service.unix),
  ]);
  await Promise.all([brief.hold('brief'), patient.hold('patient')]);
  const order = [];
  const next = ['patient', 'brief'].map((name) => other.request(name, () => order.push(name)));
  proxy.silence();
  await Promise.all(next);
  assert.deepEqual(order, ['brief', 'patient']);
  await Promise.all([brief.close(), patient.close(), other.close()]);
  await service.kill();
});

test('unreachableAfter: waiters fail when the service stays down, and the client keeps retrying', async () => {
  const service = await Service.start();
  const [patient, hasty] = await Promise.all([connect(service.unix, { unreachableAfter: Infinity }), connect(service.unix, { unreachableAfter: 0 })]);
  const holder = await patient.hold('a');
  const waiting = fails(hasty.request('a', () => {}), 'NetworkError');
  await service.kill();
  assert.match((await waiting).message, /cannot be reached/);
  await fails(hasty.request('b', () => {}), 'NetworkError');
  await fails(hasty.query(), 'NetworkError');
  const persistent = patient.request('b', () => 'granted');
  await service.start();
  assert.equal(await persistent, 'granted');
  assert.ok(holder.held);
  await patient.close();
  await hasty.close();
  await service.kill();
});

for (const place of ['unix', 'tcp']) {
  test(`a connected service that sends nothing fails pending requests within unreachableAfter, and locks stay held: ${place}`, async () => {
    const service = await Service.start(['--lease', '60s']);
    const locks = await connect(service[place], { unreachableAfter: 1200 });
    const held = await locks.hold('a');
    const beyond = held.contended();
    service.signal('SIGSTOP');
    const errors = await Promise.all([fails(locks.query(), 'NetworkError'), fails(locks.hold('b', { ifAvailable: true }), 'NetworkError'), fails(locks.hold('a'), 'NetworkError')]);
    for (const { message, cause } of errors) assert.deepEqual([/is connected, and sent no message for 1.2 s/.test(message), cause], [true, 'unreachable'], message);
    service.signal('SIGCONT');
    // The failed requests are gone, and the lock was never lost.
    assert.deepEqual(await locks.query(), { held: [{ name: 'a', mode: 'exclusive', clientId: locks.clientId }], pending: [] });
    assert.ok(held.release());
    assert.equal(await beyond, true);
    await locks.close();
    await service.kill();
  });
}
