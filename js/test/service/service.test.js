// Locks of a service: addresses, refusals, partitions and the end of a connection.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { createContext, runInContext } from 'node:vm';
import { connect, install, locks as own, uninstall } from 'navlocks';
import { WebSocket, WebSocketServer } from 'ws';
import { scratch, Service } from '../support/service.js';

const service = await Service.start();
const TOKEN = 'a token that is long enough'.replaceAll(' ', '-');

async function failure(promise) {
  const error = await promise.then(
    () => assert.fail('it was not rejected'),
    (reason) => reason,
  );
  return error;
}

test('a bad address gives a SyntaxError that names it', async () => {
  for (const url of ['', 'unix:', 'http://a', 'ws://', 'nowhere', 'ws://a#b']) {
    const error = await failure(connect(url));
    assert.ok(error instanceof DOMException);
    assert.equal(error.name, 'SyntaxError');
    assert.ok(error.message.includes(`'${url}'`), error.message);
  }
});

test('bad options are refused before the first connection attempt', async () => {
  for (const options of [null, 5, { lease: -1 }, { lease: 'a' }, { unreachableAfter: NaN }, { token: 'with\nlines' }, { token: '' }, { start: true }]) {
    assert.ok((await failure(connect('unix:/nowhere', options))) instanceof TypeError, JSON.stringify(options));
  }
  const tooLong = await failure(connect('unix:/nowhere', { partition: 'é'.repeat(129) }));
  assert.equal(tooLong.name, 'NotSupportedError');
});

test('an unreachable service gives a NetworkError', async () => {
  for (const url of ['unix:/nowhere', 'ws://127.0.0.1:1']) {
    const error = await failure(connect(url));
    assert.equal(error.name, 'NetworkError');
    assert.match(error.message, /^the lock service cannot be reached: connect E/);
  }
});

test('a server that is no lock service gives an error with its answer', async () => {
  const server = createServer((_request, response) => response.writeHead(404).end('no such page'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const error = await failure(connect(`ws://127.0.0.1:${server.address().port}`));
  assert.equal(error.name, 'OperationError');
  assert.match(error.message, /no such page/);
  server.close();
});

test('a token is not sent to another machine unencrypted, unless the program allows it', async () => {
  const token = 'a-token-that-is-long-enough';
  for (const [url, host] of [['ws://192.0.2.1:1', '192.0.2.1'], ['ws://127.0.0.1:1,locks.example:1', 'locks.example'], ['ws://[2001:db8::1]:1', '2001:db8::1']]) {
    const error = await failure(connect(url, { token }));
    assert.equal(error.name, 'SecurityError');
    assert.equal(error.message, `the access token would go to ${host} unencrypted: use wss:, or allow it by name`);
  }
  for (const [url, options] of [['ws://127.0.0.1:1'], ['ws://localhost:1'], ['ws://0.0.0.0:1', { allowTokenInClear: true }]]) {
    assert.equal((await failure(connect(url, { token, ...options }))).name, 'NetworkError', url);
  }
});

test('a service of another version gives a NotSupportedError', async () => {
  const sentence = 'this service speaks navlocks.9, and the client navlocks.2: use a later client';
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', verifyClient: (_, answer) => answer(false, 426, sentence) });
  await once(server, 'listening');
  const error = await failure(connect(`ws://127.0.0.1:${server.address().port}`));
  assert.equal(error.name, 'NotSupportedError');
  assert.match(error.message, /navlocks\.9, and the client navlocks\.2/);
  server.close();
});

test('a missing or wrong token gives a SecurityError', async () => {
  const guarded = await Service.start([], { NAVLOCKS_TOKEN: TOKEN });
  for (const token of [undefined, 'another-token-that-is-long']) {
    const error = await failure(connect(guarded.tcp, { token }));
    assert.equal(error.name, 'SecurityError');
    assert.match(error.message, /access token/);
    assert.equal(error.cause, 'unauthorized');
  }
  const locks = await connect(guarded.tcp, { token: TOKEN });
  assert.equal(await locks.request('a', () => 'granted'), 'granted');
  await locks.close();
  await guarded.kill();
});

test('wss: the client trusts the certificate that the program names, and no other', async (t) => {
  const folder = scratch();
  const [key, certificate] = ['key.pem', 'certificate.pem'].map((name) => join(folder, name));
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key, '-out', certificate, ...names];
  const { error } = spawnSync('openssl', made);
  if (error !== undefined) return t.skip('openssl is missing: the test needs it for a certificate');
  const secure = await Service.start(['--tls-cert', certificate, '--tls-key', key]);
  for (const url of [secure.tls, secure.tls.replace('127.0.0.1', 'localhost')]) {
    const locks = await connect(url, { ca: readFileSync(certificate) });
    assert.equal(await locks.request('a', () => 'granted'), 'granted');
    await locks.close();
  }
  assert.match((await failure(connect(secure.tls))).message, /certificate/);
  assert.equal((await failure(connect(secure.tcp))).name, 'NetworkError');
  await secure.kill();
});

test('F08 X37 partitions are independent over every kind of connection', async () => {
  const [one, two, again] = await Promise.all([
    connect(service.unix, { partition: 'one' }),
    connect(service.unix, { partition: 'two' }),
    connect(service.tcp, { partition: 'one' }),
  ]);
  const held = await one.hold('a');
  assert.ok(await two.request('a', { ifAvailable: true }, (lock) => lock !== null));
  assert.ok(await again.request('a', { ifAvailable: true }, (lock) => lock === null));
  const third = two.partition('one');
  assert.equal(third, two.partition('one'));
  assert.ok(await third.request('a', { ifAvailable: true }, (lock) => lock === null));
  assert.notEqual(third.clientId, two.clientId);
  held.release();
  assert.throws(() => two.partition('x'.repeat(257)), { name: 'NotSupportedError' });
  assert.throws(() => two.partition('\ud800'), { name: 'NotSupportedError' });
  assert.equal(await two.request('a', () => 'the session lives'), 'the session lives');
  await Promise.all([one.close(), two.close(), again.close()]);
});

/** Returns the limits in the welcome of the service. */
async function announcedLimits() {
  const socket = new WebSocket(service.tcp, 'navlocks.2');
  await once(socket, 'open');
  socket.send('{"hello":{}}');
  const [text] = await once(socket, 'message');
  socket.terminate();
  return JSON.parse(text).welcome.limits;
}

for (const place of ['unix', 'tcp']) {
  test(`names up to the limit of the service are granted, and longer ones fail with the limit: ${place}`, async () => {
    const limits = await announcedLimits();
    const bytes = limits['name-bytes-max'];
    const names = limits['names-per-request-max'];
    const locks = await connect(service[place]);
    for (const name of ['x'.repeat(bytes), '\0'.repeat(bytes), '\u{10000}'.repeat(bytes / 4)]) {
      const seen = await locks.request(name, { tag: '\ud800' }, async (lock) => [lock.name === name, (await locks.query()).held[0].name === name]);
      assert.deepEqual(seen, [true, true]);
    }
    for (const name of [`x${'x'.repeat(bytes)}`, `x${'\u{10000}'.repeat(bytes / 4)}`]) {
      const error = await failure(locks.request(name, () => {}));
      assert.deepEqual([error.name, error.cause], ['QuotaExceededError', 'limit']);
      assert.match(error.message, new RegExp(`\\b${bytes}\\b`));
    }
    const many = await failure(locks.request(Array.from({ length: names + 1 }, (_, number) => `${number}`), () => {}));
    assert.equal(many.name, 'QuotaExceededError');
    assert.match(many.message, new RegExp(`\\b${names}\\b`));
    const beyond = 'x'.repeat(limits['message-bytes-max']);
    assert.equal((await failure(locks.request(beyond, () => {}))).name, 'QuotaExceededError');
    assert.equal((await failure(locks.forceRelease(beyond))).name, 'QuotaExceededError');
    await locks.close();
  });
}

test('inspect, blockers, deadlocks and forceRelease work through the service', async () => {
  const [mine, other] = await Promise.all([connect(service.unix), connect(service.tcp)]);
  const a = await mine.hold(['a', 'b'], { tag: 'first \ud800' });
  const c = await other.hold('c');
  const iWant = failure(mine.hold('c'));
  const theyWant = failure(other.hold('a'));
  await other.query();
  const { held, pending } = await mine.inspect();
  assert.deepEqual(held.map(({ scope, mode, clientId, tag, fencingToken }) => ({ scope, mode, clientId, tag, fencingToken })), [
    { scope: ['a', 'b'], mode: 'exclusive', clientId: mine.clientId, tag: 'first \ud800', fencingToken: a.fencingToken },
    { scope: ['c'], mode: 'exclusive', clientId: other.clientId, tag: undefined, fencingToken: c.fencingToken },
  ]);
  assert.equal(held[0].pid, process.pid);
  const waiting = pending.find(({ clientId }) => clientId === other.clientId);
  assert.deepEqual(await mine.blockers(waiting.id), { held: [held[0].id], pending: [] });
  await assert.rejects(mine.blockers('nonsense'), TypeError);
  const [cycle] = await mine.deadlocks();
  assert.deepEqual(cycle.clients.toSorted(), [mine.clientId, other.clientId].toSorted());
  assert.equal(await mine.forceRelease('b'), 1);
  assert.equal(a.signal.reason.cause, 'ForceReleased');
  assert.equal(a.held, false);
  await Promise.all([mine.close(), other.close()]);
  assert.equal((await iWant).cause, 'ClientEnded');
  assert.equal((await theyWant).name, 'AbortError');
});

test('decision 3: a handle is released once, and at the end of its block', async () => {
  const locks = await connect(service.unix);
  const lock = await locks.hold('once');
  assert.deepEqual([lock.release(), lock.release()], [true, false]);
  const again = await locks.hold('once');
  await again[Symbol.asyncDispose]();
  assert.equal(again.held, false);
  await locks[Symbol.asyncDispose]();
});

test('close() loses locks, aborts requests, lets others be granted, and refuses later calls', async () => {
  for (const url of [service.unix, service.tcp]) {
    const [leaver, other] = await Promise.all([connect(url), connect(url)]);
    const held = await leaver.hold('left behind');
    const waiting = failure(leaver.request('left behind', () => {}));
    const next = other.request('left behind', () => 'granted');
    await leaver.close();
    await leaver.close();
    assert.equal(await next, 'granted');
    assert.deepEqual([held.held, held.signal.aborted, held.signal.reason.cause], [false, true, 'ClientEnded']);
    assert.deepEqual([(await waiting).name, (await waiting).cause], ['AbortError', 'ClientEnded']);
    for (const call of [leaver.request('a', () => {}), leaver.query(), leaver.inspect()]) {
      assert.equal((await failure(call)).name, 'InvalidStateError');
    }
    await other.close();
  }
});

test('idle clients of other partitions are closed, and those with a lock, a waiter or a stream stay', async () => {
  const locks = await connect(service.unix);
  const other = await connect(service.unix);
  const held = await locks.partition('held').hold('a');
  const waiting = locks.partition('held').request('a', ({ name }) => name);
  const stream = locks.partition('stream').events();
  const again = locks.partition('again');
  const token = () => again.request('a', ({ fencingToken }) => fencingToken);
  const before = await token();
  // A tenant has at most 2,500 partitions.
  for (let number = 0; number < 2600; number++) {
    assert.equal(await locks.partition(`used once ${number}`).request('a', ({ name }) => name), 'a');
  }
  assert.ok((await token()) > before);
  assert.equal(await other.partition('held').request('a', { ifAvailable: true }, (lock) => lock), null);
  await other.partition('stream').request('a', () => {});
  assert.equal((await stream.next()).value.type, 'requested');
  await stream.return();
  assert.ok(held.release());
  assert.equal(await waiting, 'a');
  await Promise.all([locks.close(), other.close()]);
});

test('a victim reads the tag and the process of its thief', async () => {
  const [victim, thief] = await Promise.all([connect(service.unix), connect(service.unix)]);
  const held = await victim.hold('robbed');
  await (await thief.hold('robbed', { steal: true, tag: 'nightly' })).release();
  await victim.query();
  const { message, cause } = held.signal.reason;
  assert.equal(message, `the lock 'robbed' was lost: nightly (pid ${process.pid}) stole it`);
  assert.equal(cause, 'Stolen');
  await Promise.all([victim.close(), thief.close()]);
});

test('S10 a refused steal does not affect holders that did not see the loss', async () => {
  const strict = await Service.start(['--requests-per-session-max', '1']);
  const locks = await connect(strict.unix);
  const victim = await locks.hold('a');
  assert.equal((await failure(locks.request('a', { steal: true }, () => {}))).name, 'QuotaExceededError');
  assert.equal(victim.held, true);
  assert.equal(victim.release(), true);
  assert.equal(await locks.request('a', () => 'granted'), 'granted');
  await locks.close();
  await strict.kill();
});

test('install() installs the locks of a service, with errors of the realm', async () => {
  const locks = await connect(service.unix);
  const realm = runInContext('globalThis', createContext({ setTimeout }));
  const manager = install(realm, locks);
  assert.equal(realm.navigator.locks, manager);
  assert.equal(await manager.request('a', async () => (await locks.query()).held.length), 1);
  await locks.close();
  const promise = manager.request('a', () => {});
  assert.ok(promise instanceof realm.Promise);
  assert.equal((await failure(promise)).name, 'InvalidStateError');
});

test('locks.space has the origin and the partition of a client', async () => {
  const open = await Service.start(['--allow-origin', 'http://page.example']);
  const [plain, page] = await Promise.all([connect(open.tcp, { partition: 'a' }), connect(open.tcp, { origin: 'http://page.example' })]);
  assert.deepEqual(plain.space, { origin: undefined, partition: 'a' });
  assert.deepEqual(plain.partition('b').space, { origin: undefined, partition: 'b' });
  assert.deepEqual(page.space, { origin: 'http://page.example', partition: '' });
  assert.deepEqual([own.space, own.partition('c').space].map(({ partition }) => partition), ['', 'c']);
  // The spaces are really independent.
  await plain.partition('').request('x', async () => assert.equal(await page.request('x', { ifAvailable: true }, (lock) => lock?.name), 'x'));
  await Promise.all([plain.close(), page.close()]);
  await open.kill();
});

test('install() with options of connect(): requests wait for the connection', async () => {
  const realm = runInContext('globalThis', createContext({ setTimeout }));
  const manager = install(realm, { url: service.unix, partition: 'installed' });
  assert.equal(realm.navigator.locks, manager);
  const locks = await connect(service.unix, { partition: 'installed' });
  assert.equal(await manager.request('a', async () => (await locks.query()).held.length), 1);
  await locks.close();
});

test('uninstall() restores the former properties, and closes the connection of install()', async () => {
  const realm = runInContext('globalThis', createContext({ setTimeout }));
  const locks = await connect(service.unix, { partition: 'uninstalled' });
  const first = install(realm, locks);
  const own = { LockManager: realm.LockManager, Lock: realm.Lock };
  const second = install(realm, { url: service.unix, partition: 'uninstalled' });
  assert.notEqual(realm.LockManager, own.LockManager);
  let lost;
  await new Promise((granted) => {
    const request = second.request('a', () => new Promise(() => granted()));
    lost = assert.rejects(request, { name: 'AbortError', cause: 'ClientEnded' });
  });
  await uninstall(realm);
  await lost;
  await assert.rejects(second.request('a', () => {}), { name: 'InvalidStateError', cause: 'closed' });
  assert.deepEqual(await locks.query(), { held: [], pending: [] });
  assert.deepEqual([realm.navigator.locks, realm.LockManager, realm.Lock], [first, own.LockManager, own.Lock]);
  // Locks that were passed to install() stay open.
  await uninstall(realm);
  assert.equal(await locks.request('a', () => 'granted'), 'granted');
  for (const name of ['navigator', 'LockManager', 'Lock']) assert.equal(name in realm, false, name);
  await uninstall(realm);
  await locks.close();
});

test('install() refuses arguments that are neither locks of the package nor options', () => {
  const realm = runInContext('globalThis', createContext({}));
  const foreign = { request() {}, query() {} };
  for (const wrong of [null, service.tcp, foreign]) assert.throws(() => install(realm, wrong), TypeError);
  assert.throws(() => install(realm, { url: 'mailto:a' }), { name: 'SyntaxError' });
  assert.throws(() => install(realm, { url: service.tcp, lease: -1 }), TypeError);
  assert.equal(realm.navigator, undefined);
});

test.after(() => service.kill());

test('the trace of a request is shown in queries and events', async () => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const locks = await connect(service.unix, { partition: 'traced' });
  const events = locks.events();
  const seen = events.next();
  await locks.request('a', { traceparent }, async () => assert.equal((await locks.inspect()).held[0].traceparent, traceparent));
  assert.equal((await seen).value.traceparent, traceparent);
  await locks.request('b', { traceparent: 'mine' }, async () => assert.equal((await locks.inspect()).held[0].traceparent, undefined));
  await locks.close();
});
