// The connection to a service in programs: its state, its lease, gaps of events, and the errors of
// an outage.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { connect } from 'navlocks';
import { WebSocketServer } from 'ws';
import { becomes, fails } from '../support/outcomes.js';
import { Proxy } from '../support/proxy.js';
import { hold, Peer } from '../support/script.js';
import { Service } from '../support/service.js';

const LEASE_MS = 2000;

const SESSION = { session: 7, secret: 'a secret', epoch: 1 };

test('the connection has its state, the time of the change, its lease and the error', async () => {
  const service = await Service.start(['--lease', `${LEASE_MS}ms`]);
  const begun = Date.now();
  const locks = await connect(service.tcp);
  const { connection } = locks;
  assert.equal(locks.connection, connection);
  assert.deepEqual([connection.state, connection.error, connection.lease], ['connected', undefined, LEASE_MS]);
  assert.ok(connection.since >= begun && connection.since <= Date.now());
  assert.ok(connection.leaseLeft > 0 && connection.leaseLeft <= LEASE_MS, `${connection.leaseLeft}`);
  const states = [];
  connection.addEventListener('change', () => states.push(connection.state));
  await service.kill();
  await becomes({ connection }, 'unreachable');
  while (connection.error === undefined || !/ECONNREFUSED/.test(connection.error.message)) await new Promise(setImmediate);
  assert.deepEqual([connection.error.name, connection.error.cause], ['NetworkError', 'unreachable']);
  await service.start();
  await becomes({ connection }, 'connected');
  assert.equal(connection.error, undefined);
  await locks.close();
  await becomes({ connection }, 'closed');
  assert.deepEqual(states, ['unreachable', 'connected', 'closed']);
  await service.kill();
});

test('over a Unix socket there is no lease', async () => {
  const service = await Service.start();
  const locks = await connect(service.unix);
  assert.deepEqual([locks.connection.lease, locks.connection.leaseLeft], [undefined, undefined]);
  await locks.close();
  await service.kill();
});

test('an event stream continues after a reconnect with a gap, and ends with close()', async () => {
  const service = await Service.start(['--lease', '60s']);
  const proxy = await Proxy.start(service.tcp);
  const locks = await connect(proxy.url);
  const stream = locks.events();
  const next = async () => (await stream.next()).value;
  await locks.request('before', () => {});
  for (const type of ['requested', 'granted', 'released']) assert.deepEqual([type, (await next()).type], [type, type]);
  proxy.cut();
  const gap = await next();
  assert.deepEqual([gap.type, gap.missed], ['gap', undefined]);
  await locks.request('after', () => {});
  const { type, scope, pid } = await next();
  assert.deepEqual([type, scope, pid], ['requested', ['after'], undefined]);
  const others = [];
  const read = (async () => {
    for await (const event of stream) others.push(event.type);
  })();
  await locks.query();
  await locks.close();
  await read;
  assert.deepEqual(others, ['granted', 'released']);
  await fails(locks.events().next(), 'InvalidStateError');
  await service.kill();
});

test('contended() resolves after a reconnect', async () => {
  const service = await Service.start(['--lease', '60s']);
  const proxy = await Proxy.start(service.tcp);
  const [locks, other] = await Promise.all([connect(proxy.url), connect(service.unix)]);
  const held = await locks.hold('a');
  const contended = held.contended();
  await locks.query();
  proxy.cut();
  const next = other.hold('a');
  assert.equal(await contended, true);
  held.release();
  (await next).release();
  await Promise.all([locks.close(), other.close()]);
  await service.kill();
});

test('statuses of a proxy are no end of a client, and a refusal is', async () => {
  const answers = [];
  const server = createServer();
  let peer;
  const accepts = new WebSocketServer({ noServer: true });
  server.on('upgrade', (request, socket, head) => {
    if (answers.length > 0) {
      const [status, sentence] = answers.shift();
      socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: ${sentence.length}\r\n\r\n${sentence}`);
      return;
    }
    accepts.handleUpgrade(request, socket, head, (opened) => {
      peer = new Peer(opened);
      const accepted = peer;
      peer.receive().then(({ hello }) => accepted.welcome({ ...SESSION, 'lease-ms': 60_000, resumed: hello.resume !== undefined }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const passing = [[404, 'no'], [408, 'no'], [421, 'no'], [502, 'no']];
  const final = [[401, 'no'], [403, 'no'], [426, 'no'], [421, 'a node of another cluster']];
  for (const refusal of final) {
    const locks = await connect(`ws://127.0.0.1:${server.address().port}`);
    const held = await hold(locks, peer, 'a', 1);
    answers.push(...passing.splice(0));
    peer.drop();
    await becomes(locks, 'unreachable');
    await becomes(locks, 'connected');
    assert.deepEqual([answers, held.held], [[], true]);
    answers.push(refusal);
    peer.drop();
    await becomes(locks, 'refused');
    assert.deepEqual([answers, held.held], [[], false], `${refusal}`);
    await locks.close();
  }
  accepts.close();
  server.close();
});

test('a request whose time is over while the service is unreachable fails with a NetworkError', async () => {
  const service = await Service.start();
  const locks = await connect(service.tcp);
  const held = await locks.hold('a');
  const usual = await fails(locks.request('a', { timeout: 20 }, () => {}), 'TimeoutError');
  assert.deepEqual([usual.cause, /not free within 20 ms$/.test(usual.message)], [undefined, true], usual.message);
  await service.kill();
  await becomes(locks, 'unreachable');
  const error = await fails(locks.request('b', { timeout: 20 }, () => {}), 'NetworkError');
  assert.equal(error.cause, 'unreachable');
  assert.match(error.message, /not granted within 20 ms, with its service out of reach for \d+\.\d s: the lock service cannot be reached/);
  held.release();
  await locks.close();
});

test('close() aborts pending requests, and only held locks are lost', async () => {
  const service = await Service.start();
  const locks = await connect(service.tcp);
  const held = await locks.hold('a');
  const waiting = fails(locks.request('a', () => {}), 'AbortError');
  await locks.query();
  await locks.close();
  const error = await waiting;
  assert.deepEqual([error.message, error.cause], ["the request for 'a' was aborted: its client was ended", 'ClientEnded']);
  assert.match(held.signal.reason.message, /^the lock 'a' was lost/);
  await service.kill();
});
