// The messages and the lease of a client whose service restarts, against a scripted service.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { pass } from '../support/clock.js';
import { becomes, fails, lost } from '../support/outcomes.js';
import { hold, Script, startScript } from '../support/script.js';

const SESSION = { session: 12, secret: 'a secret', epoch: 5 };
const RESTARTED = { ...SESSION, epoch: 6, resumed: true };

test('a claim has clients, requests in the order of their numbers, `claimed`, and the rest after it', async () => {
  const { script, url } = await startScript();
  const [locks, peer] = await script.connect(url, SESSION);
  const builds = locks.partition('builds');
  assert.deepEqual(await peer.receive(), { open: { client: 1, partition: 'builds' } });
  const held = await hold(locks, peer, 'held', 71);
  held.contended();
  assert.deepEqual(await peer.receive(), { watch: { contention: 1 } });
  const waits = builds.request(['b', 'a'], { mode: 'shared' }, () => {});
  await peer.receive();
  peer.send({ pending: { id: 2, place: [5, 17] } });
  const aborter = new AbortController();
  const aborted = fails(locks.request('aborted', { signal: aborter.signal }, () => {}), 'AbortError');
  await peer.receive();
  const question = locks.query();
  await peer.receive();
  const events = locks.events();
  await peer.receive();
  peer.send({ event: { watching: 0 } });
  peer.drop();
  const again = await script.accept();
  assert.deepEqual((await again.receive()).hello.resume, {
    session: 12,
    secret: 'a secret',
    epoch: 5,
  });
  // These changes happen after the hello.
  aborter.abort();
  await aborted;
  const later = locks.partition('later').request('later', () => {});
  assert.deepEqual([held.held, held.signal.aborted], [true, false]);
  again.welcome(RESTARTED);
  const claim = [
    { open: { client: 0 } },
    { open: { client: 1, partition: 'builds' } },
    { open: { client: 2, partition: 'later' } },
    { request: { id: 1, names: ['held'], token: 71 } },
    { request: { id: 2, client: 1, names: ['a', 'b'], mode: 'shared', place: [5, 17] } },
    { request: { id: 4, client: 2, names: ['later'] } },
    'claimed',
    { watch: { events: 0 } },
    { watch: { contention: 1 } },
    { ask: { id: 1, question: { locks: 'partition' } } },
  ];
  for (const message of claim) assert.deepEqual(await again.receive(), message);
  // The connection breaks before the claim counts: the client repeats it to the next epoch.
  again.drop();
  const third = await script.accept();
  const { hello } = await third.receive();
  assert.equal(hello.resume.epoch, 6);
  third.welcome({ ...RESTARTED, epoch: 7 });
  for (const message of claim) assert.deepEqual(await third.receive(), message);
  third.send({ granted: { id: 2, token: 80 } });
  third.send({ granted: { id: 4, token: 81 } });
  third.send({ answer: { id: 1, reply: { locks: { held: [], pending: [] } } } });
  await Promise.all([waits, later, question]);
  assert.ok(held.held);
  // The service refuses the claim.
  third.send({ over: { id: 1, why: { lost: { cause: 'not-reclaimed' } } } });
  assert.equal(await lost(held), 'NotReclaimed');
  events.return();
  third.drop();
  await locks.close();
  script.close();
});

test('a grant just before the end of the service is claimed, and a lock with an oversized claim is lost', async () => {
  const { script, url } = await startScript();
  const [locks, peer] = await script.connect(url, SESSION);
  const long = await hold(locks, peer, 'x'.repeat(500), 70);
  const wanted = locks.hold('wanted');
  await peer.receive();
  peer.send({ granted: { id: 2, token: 71 } });
  peer.send({ error: { code: 'shutting-down', message: 'the service is shutting down' } });
  const again = await script.accept();
  assert.equal((await again.receive()).hello.resume.session, 12);
  again.welcome({ ...RESTARTED, limits: { 'message-bytes-max': 400 } });
  assert.deepEqual(await again.receive(), { open: { client: 0 } });
  assert.deepEqual(await again.receive(), { request: { id: 2, names: ['wanted'], token: 71 } });
  assert.equal(await again.receive(), 'claimed');
  assert.equal((await wanted).fencingToken, 71);
  assert.equal(await lost(long), 'ServiceGone');
  again.drop();
  await locks.close();
  script.close();
});

test('a welcome that requires a claim extends the lease, counted from the hello', async () => {
  const leaseMs = 600_000;
  const leased = { 'lease-ms': leaseMs };
  const script = new Script();
  const url = await script.listen(0, '127.0.0.1');
  const [locks, peer] = await script.connect(url, { ...SESSION, ...leased });
  const held = await hold(locks, peer, 'held', 71);
  pass(leaseMs / 2);
  peer.drop();
  const again = await script.accept();
  await again.receive();
  pass(leaseMs / 4);
  again.welcome({ ...RESTARTED, ...leased });
  assert.deepEqual(await again.receive(), { open: { client: 0 } });
  assert.deepEqual(await again.receive(), { request: { id: 1, names: ['held'], token: 71 } });
  assert.equal(await again.receive(), 'claimed');
  // A quarter has passed since the hello, and three quarters since the one before.
  const { leaseLeft } = locks.connection;
  assert.ok(leaseLeft > leaseMs / 8 && leaseLeft <= (leaseMs * 5) / 8, `${leaseLeft}`);
  assert.equal(held.held, true);
  pass((leaseMs * 5) / 8);
  assert.equal(held.held, false);
  assert.equal(await lost(held), 'LeaseLapsed');
  await locks.close();
  script.close();
});

test('presence: a client listens at the path of the welcome, and stops with its session', async () => {
  const { script, folder, url } = await startScript();
  const presence = join(folder, 'presence');
  const [locks, peer] = await script.connect(url, { ...SESSION, presence });
  assert.equal(await peer.receive(), 'present');
  const probe = connectSocket(presence);
  await once(probe, 'connect');
  const ended = once(probe, 'close');
  const held = await hold(locks, peer, 'held', 71);
  peer.drop();
  const again = await script.accept();
  await again.receive();
  again.welcome({ ...RESTARTED, presence });
  assert.equal(await again.receive(), 'present');
  assert.deepEqual(await again.receive(), { open: { client: 0 } });
  assert.deepEqual(await again.receive(), { request: { id: 1, names: ['held'], token: 71 } });
  assert.deepEqual([held.held, probe.closed, existsSync(presence)], [true, false, true]);
  again.drop();
  await becomes(locks, 'unreachable');
  await locks.close();
  assert.equal(existsSync(presence), false);
  await ended;
  script.close();
});

test('presence: an unusable path is ignored', async () => {
  const { script, folder, url } = await startScript();
  for (const presence of [join(folder, 'no such folder', 'presence'), join(folder, 'x'.repeat(120)), 'relative', '']) {
    const [locks, peer] = await script.connect(url, { ...SESSION, presence });
    const held = await hold(locks, peer, 'held', 71);
    assert.ok(held.release());
    assert.deepEqual(await peer.receive(), { end: 1 });
    peer.drop();
    await locks.close();
  }
  // A service over TCP must not choose paths on this machine.
  const far = new Script();
  const presence = join(folder, 'over tcp');
  const [locks, peer] = await far.connect(await far.listen(0, '127.0.0.1'), { ...SESSION, 'lease-ms': 60_000, presence });
  await hold(locks, peer, 'held', 71);
  assert.equal(existsSync(presence), false);
  peer.drop();
  await locks.close();
  far.close();
  script.close();
});

test('a refused subscription ends its stream with the error, and the session continues', async () => {
  const { script, url } = await startScript();
  const [locks, peer] = await script.connect(url, SESSION);
  const held = await hold(locks, peer, 'held', 71);
  const events = locks.events();
  assert.deepEqual(await peer.receive(), { watch: { events: 0 } });
  peer.send({ event: { refused: { client: 0, fault: { code: 'limit', message: 'too many subscribers' } } } });
  await fails(events.next(), 'QuotaExceededError');
  const later = locks.events();
  assert.deepEqual(await peer.receive(), { watch: { events: 0 } });
  peer.send({ event: { watching: 0 } });
  later.return();
  assert.deepEqual(await peer.receive(), { watch: { 'no-events': 0 } });
  assert.ok(held.held);
  peer.drop();
  await locks.close();
  script.close();
});

test('lists of names, tags and clients beyond a limit fail alone, and are not sent', async () => {
  const { script, url } = await startScript();
  const limits = {
    'message-bytes-max': 300,
    'name-bytes-max': 9,
    'names-per-request-max': 2,
    'tag-bytes-max': 4,
    'requests-per-session-max': 2,
    'clients-per-session-max': 3,
  };
  const [locks, peer] = await script.connect(url, { ...SESSION, limits });
  const held = await hold(locks, peer, 'ninebytes', 71);
  const excess = async (promise, sentence) => assert.match((await fails(promise, 'QuotaExceededError')).message, sentence);
  await excess(locks.hold(['a', 'b', 'c']), /^a request of 3 names, and the service takes 2: /);
  await excess(locks.hold('a', { tag: 'long!' }), /^the tag has 5 bytes, and the service takes 4: /);
  // Idle clients make room; without an idle one a partition gets none.
  const builds = locks.partition('builds');
  assert.deepEqual(await peer.receive(), { open: { client: 1, partition: 'builds' } });
  const stream = builds.events();
  assert.deepEqual(await peer.receive(), { watch: { events: 1 } });
  locks.partition('idle');
  assert.deepEqual(await peer.receive(), { open: { client: 2, partition: 'idle' } });
  const other = locks.partition('other');
  assert.deepEqual([await peer.receive(), await peer.receive()], [{ close: 2 }, { open: { client: 3, partition: 'other' } }]);
  const waits = other.query();
  await peer.receive();
  const none = locks.partition('none');
  await excess(none.hold('a'), /^the connection has 3 clients, and the service takes 3: /);
  await excess(none.query(), /clients/);
  await excess(none.events().next(), /clients/);
  peer.send({ answer: { id: 1, reply: { locks: { held: [], pending: [] } } } });
  await waits;
  const later = none.query();
  assert.deepEqual([await peer.receive(), await peer.receive()], [{ close: 3 }, { open: { client: 4, partition: 'none' } }]);
  assert.deepEqual(await peer.receive(), { ask: { id: 2, client: 4, question: { locks: 'partition' } } });
  peer.send({ answer: { id: 2, reply: { locks: { held: [], pending: [] } } } });
  await later;
  assert.ok(held.held);
  stream.return();
  peer.drop();
  await locks.close();
  script.close();
});
