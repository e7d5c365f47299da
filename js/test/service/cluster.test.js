// A cluster, as its clients see it: lists of addresses, nodes that name the owner of the locks, and
// sessions of partitions. The nodes are peers that the test plays.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { hostname } from 'node:os';
import { test } from 'node:test';
import { connect } from 'navlocks';
import WebSocket from 'ws';
import { readAddresses } from '../../service/io/addresses.js';
import { parseAddress } from '../../service/io/dial.js';
import { Backoff } from '../../service/backoff.js';
import { Machine } from '../../service/machine.js';
import { codeOfStatus } from '../../service/refusals.js';
import { Route } from '../../service/route.js';
import { becomes, fails, lost } from '../support/outcomes.js';
import { hold, Script } from '../support/script.js';

const SESSION = { session: 7, secret: 'a secret', epoch: 1, cluster: true, 'lease-ms': 60_000 };
const MOVED = { ...SESSION, epoch: 2, resumed: true };
const PLACE = [1, 40];

/** Nodes of a cluster: { script, url } each. They close with the test. */
async function startNodes(t, count) {
  const nodes = [];
  for (let index = 0; index < count; index++) {
    const script = new Script();
    nodes.push({ script, url: await script.listen(0, '127.0.0.1') });
    t.after(() => script.close());
  }
  return nodes;
}

/** An address where no process listens. */
async function deadUrl() {
  const script = new Script();
  const url = await script.listen(0, '127.0.0.1');
  script.close();
  return url;
}

function moves(peer, to) {
  peer.send({ error: { code: 'moved', message: 'elsewhere', to } });
}

/** The next connection, up to its hello. */
async function greeted({ script }) {
  const peer = await script.accept();
  return { peer, hello: (await peer.receive()).hello };
}

async function hearClaim(peer, expected) {
  assert.deepEqual(await peer.receive(), { open: { client: 0 } });
  for (const request of expected) assert.deepEqual(await peer.receive(), { request });
  assert.equal(await peer.receive(), 'claimed');
}

function createRoute(list, token = false, random = Math.random()) {
  const addresses = readAddresses(list, parseAddress, (sentence) => assert.fail(sentence));
  return new Route(addresses, token, parseAddress, random);
}

function dialled({ target: { address, carries } }) {
  return [address.url?.href ?? `unix:${address.path}`, carries];
}

const GONE = { code: 'unreachable', message: 'no process listens' };

test('dead addresses of a list are passed over', async (t) => {
  const [node] = await startNodes(t, 1);
  // The first address to be dialled differs from client to client.
  for (let round = 0; round < 10; round++) {
    const urls = [await deadUrl(), node.url, await deadUrl()];
    const list = round % 2 === 0 ? urls : `${urls}`.replaceAll(',ws://', ',');
    const [locks, peer] = await node.script.connect(list, SESSION);
    const held = await hold(locks, peer, 'a', 1);
    peer.drop();
    const { peer: again } = await greeted(node);
    again.welcome(MOVED);
    await hearClaim(again, [{ id: 1, names: ['a'], token: 1 }]);
    assert.equal(held.held, true);
    await locks.close();
  }
});

test('clients of one list begin evenly, and spread evenly when a node is gone', () => {
  const firsts = {};
  const seconds = {};
  for (let order = 0; order < 24; order++) {
    const route = createRoute('ws://a,b,c,d', false, (order + 0.5) / 24);
    const [first] = dialled(route);
    route.failed(GONE, false, 0);
    const way = `${first} ${dialled(route)[0]}`;
    firsts[first] = (firsts[first] ?? 0) + 1;
    seconds[way] = (seconds[way] ?? 0) + 1;
  }
  assert.deepEqual(Object.values(firsts), [6, 6, 6, 6]);
  assert.deepEqual(Object.values(seconds), Array(12).fill(2));
});

test('a list without a living node is a NetworkError, and a bad list a SyntaxError that names it', async () => {
  const error = await fails(connect([await deadUrl(), await deadUrl()]), 'NetworkError');
  assert.equal(error.cause, 'unreachable');
  const bad = [
    ['wss://a,', 'empty'],
    ['wss://a,,b', 'empty'],
    ['a,wss://b', 'no address'],
    ['wss://a,http://b', "'http://b'"],
    ['wss://a,b:port', "'wss://b:port'"],
    ['unix:/a,unix:/b', 'Unix socket'],
    ['unix:/a,ws://b', 'Unix socket'],
    ['ws://b,unix:/a', 'Unix socket'],
    ['wss://a,ws://b', 'mixes'],
  ];
  for (const [list, problem] of bad) {
    const { message } = await fails(connect(list), 'SyntaxError');
    assert.ok(message.includes(list) && message.includes(problem), message);
  }
  await fails(connect([]), 'SyntaxError');
  assert.deepEqual(readAddresses('unix:/a,b', parseAddress), [{ path: '/a,b' }]);
});

test('a node sends the client to the owner, which hears the same hello', async (t) => {
  const [node, owner] = await startNodes(t, 2);
  const connected = connect(node.url, { partition: 'p', lease: 9000 });
  const { peer, hello } = await greeted(node);
  const { secret, ...rest } = hello;
  assert.deepEqual(rest, { partition: 'p', 'lease-ms': 9000, process: `${process.pid}@${hostname()}` });
  assert.match(secret, /^[A-Za-z0-9_-]{21}[AQgw]$/);
  moves(peer, owner.url);
  const there = await greeted(owner);
  assert.deepEqual(there.hello, hello);
  there.peer.welcome(SESSION);
  const locks = await connected;
  await hold(locks, there.peer, 'a', 1);
  await locks.close();
});

test('the first connection waits while no node owns the locks', async (t) => {
  const [node] = await startNodes(t, 1);
  const connected = connect(node.url);
  for (let round = 0; round < 3; round++) moves((await greeted(node)).peer);
  (await greeted(node)).peer.welcome(SESSION);
  const locks = await connected;
  assert.equal(locks.connection.state, 'connected');
  await locks.close();
});

test('a lock and a place are claimed from the owner that a planned move names', async (t) => {
  const [node, owner] = await startNodes(t, 2);
  const [locks, peer] = await node.script.connect(node.url, SESSION);
  const held = await hold(locks, peer, 'a', 1);
  const waits = locks.hold('b');
  await peer.receive();
  peer.send({ pending: { id: 2, place: PLACE } });
  moves(peer, owner.url);
  const there = await greeted(owner);
  assert.deepEqual([there.hello.resume.session, there.hello.resume.epoch], [7, 1]);
  assert.equal(held.held, true);
  there.peer.welcome(MOVED);
  await hearClaim(there.peer, [
    { id: 1, names: ['a'], token: 1 },
    { id: 2, names: ['b'], place: PLACE },
  ]);
  there.peer.send({ granted: { id: 2, token: 20 } });
  assert.equal((await waits).fencingToken, 20);
  assert.equal(held.held, true);
  await locks.close();
});

test('a lock is claimed after a take-over that takes its time', async (t) => {
  const [node] = await startNodes(t, 1);
  const [locks, peer] = await node.script.connect(node.url, SESSION);
  const held = await hold(locks, peer, 'a', 1);
  const owner = await deadUrl();
  peer.drop();
  for (let round = 0; round < 3; round++) {
    // The node knows no better, and cannot carry.
    const first = await greeted(node);
    assert.equal(first.hello.carry, undefined);
    moves(first.peer, owner);
    const carried = await greeted(node);
    assert.equal(carried.hello.carry, true);
    moves(carried.peer, owner);
    moves((await greeted(node)).peer);
  }
  assert.deepEqual([locks.connection.state, held.held], ['unreachable', true]);
  const { peer: again } = await greeted(node);
  again.welcome(MOVED);
  await hearClaim(again, [{ id: 1, names: ['a'], token: 1 }]);
  assert.equal(held.held, true);
  await locks.close();
});

test('a node carries for a client that cannot reach the owner, stopped or dead', async (t) => {
  const [node] = await startNodes(t, 1);
  // A process that is stopped takes connections all the same.
  const stopped = createServer().listen(0, '127.0.0.1');
  const sockets = [];
  stopped.on('connection', (socket) => sockets.push(socket));
  t.after(() => {
    stopped.close();
    sockets.forEach((socket) => socket.destroy());
  });
  await new Promise((resolve) => stopped.once('listening', resolve));
  for (const owner of [await deadUrl(), `ws://127.0.0.1:${stopped.address().port}`]) {
    const connected = connect(node.url, { lease: 400 });
    moves((await greeted(node)).peer, owner);
    const { peer, hello } = await greeted(node);
    assert.equal(hello.carry, true);
    assert.deepEqual([hello.unreachable, hello['home-ms'] > 4000], [[`${owner}/`], true]);
    peer.welcome(SESSION);
    const locks = await connected;
    await hold(locks, peer, 'a', 1);
    // It is remembered.
    peer.drop();
    moves((await greeted(node)).peer, owner);
    const again = await greeted(node);
    assert.equal(again.hello.carry, true);
    again.peer.welcome({ ...SESSION, resumed: true });
    await becomes(locks, 'connected');
    await locks.close();
  }
});

test('an owner that does not know the session begins another one', async (t) => {
  const [node, owner] = await startNodes(t, 2);
  const [locks, peer] = await node.script.connect(node.url, SESSION);
  const held = await hold(locks, peer, 'a', 1);
  const waits = locks.hold('b');
  await peer.receive();
  moves(peer, owner.url);
  (await greeted(owner)).peer.send({ error: { code: 'unknown-session', message: 'never heard of it' } });
  const { peer: there, hello } = await greeted(owner);
  assert.equal(hello.resume, undefined);
  there.welcome({ ...SESSION, session: 8, epoch: 2 });
  assert.equal(await lost(held), 'ServiceGone');
  assert.deepEqual(await there.receive(), { request: { id: 2, names: ['b'] } });
  await Promise.all([locks.close(), fails(waits, 'AbortError')]);
});

test('a partition of a cluster is a session of its own, shared by those who ask for it', async (t) => {
  const [node, owner] = await startNodes(t, 2);
  const [locks, peer] = await node.script.connect(node.url, { ...SESSION, origin: 'https://shop.example', epoch: 5 }, { partition: 'a', lease: 9000 });
  const builds = locks.partition('b');
  assert.deepEqual(builds.space, { origin: 'https://shop.example', partition: 'b' });
  const waits = builds.hold('x');
  const { peer: asked, hello } = await greeted(node);
  assert.deepEqual({ ...hello, secret: 'its own' }, { partition: 'b', 'lease-ms': 9000, process: `${process.pid}@${hostname()}`, secret: 'its own' });
  moves(asked, owner.url);
  const { peer: second } = await greeted(owner);
  // Epochs are those of a slot.
  second.welcome({ ...SESSION, session: 8, epoch: 2 });
  assert.deepEqual(await second.receive(), { request: { id: 1, names: ['x'] } });
  second.send({ granted: { id: 1, token: 1 } });
  const held = await waits;
  assert.equal(builds.clientId, '8.0');
  // Partitions of a connection share their sessions, from wherever they are opened.
  builds.partition('a');
  assert.deepEqual(await peer.receive(), { open: { client: 1, partition: 'a' } });
  builds.partition('b');
  assert.deepEqual(await second.receive(), { open: { client: 1, partition: 'b' } });
  await hold(locks, peer, 'x', 1);
  // The end of a connection ends all its sessions.
  const closed = locks.close();
  assert.equal(await peer.receive(), 'bye');
  assert.equal(await second.receive(), 'bye');
  await closed;
  assert.equal(await lost(held), 'ClientEnded');
  for (const ended of [locks, builds, locks.partition('c')]) await fails(ended.hold('x'), 'InvalidStateError');
});

test('a page takes a list too, and follows nodes to the owner', async (t) => {
  const [node, owner] = await startNodes(t, 2);
  globalThis.WebSocket ??= WebSocket;
  const page = await import('navlocks/browser');
  const connected = page.connect(`${await deadUrl()},${node.url.slice('ws://'.length)}`);
  moves((await greeted(node)).peer, owner.url);
  (await greeted(owner)).peer.welcome(SESSION);
  const locks = await connected;
  const other = locks.partition('b');
  // The list is the same, and the first address to be dialled a dead one or this.
  const { peer, hello } = await greeted(node);
  assert.equal(hello.partition, 'b');
  peer.welcome({ ...SESSION, session: 8 });
  const held = await hold(other, peer, 'x', 1);
  assert.equal(held.fencingToken, 1);
  await locks.close();
  for (const list of ['wss://a,ws://b', 'wss://a,,b', 'a,wss://b', undefined]) await fails(page.connect(list), 'SyntaxError');
});

test('a round dials each address once and begins with the last good one', () => {
  const route = createRoute('ws://a,b,c');
  const rounds = [];
  for (let count = 0; count < 2; count++) {
    const round = [];
    do round.push(dialled(route)[0]);
    while (route.failed(GONE, false, 0));
    rounds.push(round);
    assert.deepEqual([...round].sort(), ['ws://a/', 'ws://b/', 'ws://c/']);
  }
  assert.deepEqual(rounds[0], rounds[1]);
  while (dialled(route)[0] !== rounds[0][1]) route.failed(GONE, false, 0);
  route.reached();
  assert.deepEqual(dialled(route), [rounds[0][1], false]);
  assert.equal(route.failed(GONE, false, 0), true);
  assert.deepEqual(dialled(route), [rounds[0][0], false]);
  const firsts = new Set(Array.from({ length: 200 }, () => dialled(createRoute('ws://a,b,c'))[0]));
  assert.equal(firsts.size, 3);
});

/** Shared with the Rust client, which has the same route. */
const STORIES = readFileSync(new URL('../../../crates/navlocks-client/tests/routes.txt', import.meta.url), 'utf8');

test('a route follows the stories of both clients', () => {
  let route;
  const known = (word) => (word === '-' ? undefined : word);
  const inputs = {
    moved: (to) => route.failed({ code: 'moved', to: known(to) }, true, 0),
    left: (to) => route.moved(known(to), 0),
    gone: () => route.failed(GONE, false, 0),
    refused: () => route.failed({ code: 'unauthorized' }, false, 0),
    reached: () => route.reached(),
  };
  for (const [index, line] of STORIES.split('\n').entries()) {
    if (line === '' || line.startsWith('#')) continue;
    const [before, expected] = line.split(' : ');
    const [word, given, ...flags] = before.split(/ +/);
    const place = `line ${index + 1}: ${line}`;
    if (word === 'route') {
      route = createRoute(given, flags.includes('token') && !flags.includes('clear'));
    } else if (word === 'status') {
      const code = codeOfStatus(Number(given), flags[0]);
      assert.equal(route.isFinal({ code }, false), expected === 'yes', place);
    } else if (word === 'final') {
      assert.equal(route.isFinal({ code: 'unauthorized' }, given === 'after'), expected === 'yes', place);
    } else if (word === 'way') {
      const { unreachable, 'home-ms': home } = route.way(0);
      assert.equal(unreachable?.[0], known(expected), place);
      assert.equal(home !== undefined, expected !== '-', place);
    } else if (word === 'limit') {
      assert.equal(route.limit(known(given) && Number(given)), Number(expected), place);
    } else {
      const atOnce = inputs[word](given);
      const next = atOnce === undefined ? '-' : atOnce ? 'at-once' : 'pause';
      const [address, carries] = dialled(route);
      assert.equal(`${next} ${address}${carries ? ' carry' : ''}`, expected, place);
    }
  }
});

test('the way to a node may take longer after a round in vain', () => {
  const route = createRoute('ws://a,b,c,d,e');
  const first = route.limit(8000);
  for (let count = 0; count < 5; count++) route.failed(GONE, false, 0);
  assert.equal(route.limit(8000), 2 * first);
});

test('a session that a take-over waits for makes short pauses', () => {
  const ignore = () => {};
  const output = { dial: ignore, drop: ignore, presence: ignore, changed: ignore, wait: ignore, deliver: ignore, random: Math.random };
  const addresses = readAddresses('ws://a,b', parseAddress);
  const machine = new Machine({ addresses, parse: parseAddress, partition: '', unreachableAfter: Infinity }, { ...output, error: ignore }, 0);
  machine.start(0);
  machine.request(0, { scope: 'x', mode: 'exclusive' }, 0);
  let longest = 0;
  for (let count = 0, time = 0; count < 50; count++) {
    machine.broken(GONE, time);
    // An attempt lasts longer than every pause.
    if (machine.deadline - time > 1000) continue;
    longest = Math.max(longest, machine.deadline - time);
    time = machine.deadline;
    machine.elapsed(time);
  }
  assert.ok(longest >= 100 && longest <= 200, `${longest}`);
});

test('a cluster is dialled five times a second during a take-over', () => {
  const backoff = new Backoff(1000);
  const longest = Math.max(...Array.from({ length: 100 }, () => backoff.nextInTakeover(Math.random())));
  assert.ok(longest >= 100 && longest <= 200, `${longest}`);
  assert.equal(backoff.nextPause(), 1000);
});

test('pauses between attempts grow to the longest one, until a connection has lasted as long', () => {
  const backoff = new Backoff(100);
  const pauses = Array.from({ length: 7 }, () => backoff.nextPause());
  assert.deepEqual(pauses, [0, 10, 20, 40, 80, 100, 100]);
  assert.deepEqual([backoff.after(99), backoff.nextPause()], [false, 100]);
  assert.deepEqual([backoff.after(100), backoff.nextPause(), backoff.nextPause()], [true, 0, 10]);
});
