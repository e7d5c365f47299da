// Locks survive restarts of their service: real services are killed, stopped and restarted under
// clients in Node.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { connect } from 'navlocks';
import { becomes, lost } from '../support/outcomes.js';
import { Program } from '../support/program.js';
import { command, scratch, Service } from '../support/service.js';
import { amount } from '../support/soak.js';

/** So long that no lease lapses while a service is started on a busy machine. */
const LEASE = ['--lease', '60s'];

const PLACES = ['unix', 'tcp'];

/** The ends of a service: a kill, and an orderly shutdown. */
const ENDS = ['SIGKILL', 'SIGTERM'];

/** Ends the service. Resolves when these clients have noticed. */
async function end(service, signal, ...clients) {
  const noticed = clients.map((locks) => becomes(locks, 'unreachable'));
  await service.kill(signal);
  await Promise.all(noticed);
}

async function tokensOf(locks) {
  const { held } = await locks.inspect();
  return held.map(({ scope, mode, fencingToken }) => [...scope, mode, fencingToken]);
}

/** Returns the tokens of all locks when all clients have claimed theirs. */
async function claimedTokens(clients) {
  await Promise.all(clients.map((locks) => locks.query()));
  return (await tokensOf(clients[0])).map(([, , token]) => token).toSorted();
}

for (const place of PLACES) {
  for (const signal of ENDS) {
    test(`a held lock keeps its token over ${signal} and a restart: ${place}`, async () => {
      const service = await Service.start(LEASE);
      const locks = await connect(service[place]);
      const id = locks.clientId;
      const elsewhere = locks.partition('elsewhere');
      const held = [await locks.hold(['a', 'b']), await locks.hold('c', { mode: 'shared' }), await elsewhere.hold('a')];
      const gone = await locks.hold('released in doubt');
      let finish;
      const scoped = locks.request('scoped', () => new Promise((resolve) => {
        finish = resolve;
      }));
      const before = [await tokensOf(locks), await tokensOf(elsewhere)];
      for (let round = 0; round < 2; round++) {
        await end(service, signal, locks);
        for (const lock of held) assert.deepEqual([lock.held, lock.signal.aborted], [true, false]);
        // Requested while no service runs.
        const question = locks.query();
        gone.release();
        const fresh = locks.partition(`fresh ${round}`).request('a', () => 'granted');
        await service.start();
        assert.equal((await question).held.length, 4);
        assert.equal(await fresh, 'granted');
        const known = [await tokensOf(locks), await tokensOf(elsewhere)];
        assert.deepEqual(known, [before[0].filter(([name]) => name !== 'released in doubt'), before[1]]);
        assert.equal(locks.clientId, id);
      }
      const other = await connect(service.unix);
      for (const name of ['a', 'b', 'c', 'scoped']) {
        assert.equal(await other.request(name, { ifAvailable: true }, (lock) => lock), null, name);
      }
      finish('done');
      assert.equal(await scoped, 'done');
      for (const lock of held) assert.ok(lock.release());
      assert.ok(await other.request(['a', 'b', 'c', 'released in doubt'], (lock) => lock.fencingToken > held[2].fencingToken));
      await Promise.all([locks.close(), other.close()]);
      await service.kill();
    });
  }

  test(`waiters keep their order over a restart: ${place}`, async () => {
    const service = await Service.start(LEASE);
    const clients = await Promise.all([1, 2, 3].map(() => connect(service[place])));
    const held = await clients[0].hold('a');
    const [order, waiting] = [[], []];
    for (let number = 0; number < 6; number++) {
      const locks = clients[number % 3];
      waiting.push(locks.request('a', () => order.push(number)));
      await locks.query();
    }
    for (let round = 0; round < 2; round++) {
      await end(service, 'SIGKILL', ...clients);
      await service.start();
      await Promise.all(clients.map((locks) => becomes(locks, 'connected')));
    }
    assert.deepEqual(order, []);
    waiting.push(clients[2].request('a', () => order.push(6)));
    assert.ok(held.release());
    await Promise.all(waiting);
    assert.deepEqual(order, [0, 1, 2, 3, 4, 5, 6]);
    assert.deepEqual(await clients[0].query(), { held: [], pending: [] });
    await Promise.all(clients.map((locks) => locks.close()));
    await service.kill();
  });

  test(`grants and steals that the service processed while it was killed stay in effect: ${place}`, async () => {
    const service = await Service.start(LEASE);
    const locks = await connect(service[place]);
    const victim = await locks.hold('a');
    const wanted = Array.from({ length: 100 }, (_, number) => locks.hold(`${number}`));
    const theft = locks.hold('a', { steal: true });
    await service.kill();
    await service.start();
    const [granted, thief] = [await Promise.all(wanted), await theft];
    assert.equal(await lost(victim), 'Stolen');
    const known = new Map((await tokensOf(locks)).map(([name, , token]) => [name, token]));
    assert.equal(known.size, 101);
    for (const lock of [...granted, thief]) assert.equal(known.get(lock.scope[0]), lock.fencingToken);
    await locks.close();
    await service.kill();
  });

  test(`contended() and events continue after a restart: ${place}`, async () => {
    const service = await Service.start(LEASE);
    const locks = await connect(service[place]);
    const held = await locks.hold('a');
    const contended = held.contended();
    const events = locks.events();
    const types = [];
    const watched = (async () => {
      for await (const { type } of events) {
        types.push(type);
        if (type === 'granted') return;
      }
    })();
    await locks.query();
    await end(service, 'SIGKILL', locks);
    await service.start();
    await locks.query();
    const next = locks.request('a', () => {});
    assert.equal(await contended, true);
    held.release();
    await Promise.all([next, watched]);
    assert.deepEqual(types, ['gap', 'requested', 'released', 'granted']);
    await locks.close();
    await service.kill();
  });
}

test('a Node process that is stopped during a restart keeps its lock, and other names are not blocked', async () => {
  const service = await Service.start();
  const program = new Program('service-holder.js', [service.unix, 1000]);
  assert.equal(await program.line(), 'requested');
  assert.equal(await program.line(), 'held');
  program.child.kill('SIGSTOP');
  await service.kill();
  await service.start();
  const locks = await connect(service.unix);
  const order = [];
  const next = locks.request('held', () => order.push('next'));
  const ifAvailable = locks.request('held', { ifAvailable: true }, (lock) => order.push(lock));
  assert.equal(await locks.request('another name', () => 'granted'), 'granted');
  assert.deepEqual(order, []);
  program.child.stdin.write('?');
  program.child.kill('SIGCONT');
  assert.equal(await program.line(), 'answer true');
  await ifAvailable;
  assert.deepEqual(order, [null]);
  await program.kill();
  await next;
  assert.deepEqual(order, [null, 'next']);
  await locks.close();
  await service.kill();
});

test('a lock that is stolen after a restart, before its holder claims it, is lost', async () => {
  const service = await Service.start();
  const program = new Program('service-holder.js', [service.unix, 1000]);
  assert.equal(await program.line(), 'requested');
  assert.equal(await program.line(), 'held');
  program.child.kill('SIGSTOP');
  await service.kill();
  await service.start();
  const locks = await connect(service.unix);
  const thief = await locks.hold('held', { steal: true });
  program.child.kill('SIGCONT');
  assert.equal(await program.line(), 'lost Stolen false');
  assert.equal(thief.held, true);
  await locks.close();
  await program.kill();
  await service.kill();
});

test('a service that is killed repeatedly during claims loses no lock', async () => {
  const service = await Service.start(LEASE);
  const clients = await Promise.all(PLACES.map((place) => connect(service[place])));
  const held = await Promise.all(clients.map((locks, number) => locks.hold(`held by ${number}`)));
  const tokens = held.map(({ fencingToken }) => fencingToken);
  for (let round = 0; round < 10; round++) {
    await service.kill();
    await service.start();
  }
  assert.deepEqual(await claimedTokens(clients), tokens.toSorted());
  for (const lock of held) assert.ok(lock.release());
  await Promise.all(clients.map((locks) => locks.close()));
  await service.kill();
});

test('clients under load while their service is killed exclude each other, and lose no lock', async () => {
  const service = await Service.start(LEASE);
  const clients = await Promise.all(Array.from({ length: 8 }, (_, number) => connect(service[PLACES[number % 2]])));
  const [holders, tokens] = [new Map(), new Map()];
  const begin = ({ name, mode, fencingToken, signal }) => {
    const others = holders.get(name) ?? [];
    assert.ok(others.every((other) => other === 'shared' && mode === 'shared'), `${name} is held twice`);
    if (mode === 'exclusive') {
      assert.ok(fencingToken > (tokens.get(name) ?? 0), `the token of ${name} did not grow`);
      tokens.set(name, fencingToken);
    }
    holders.set(name, [...others, mode]);
    assert.equal(signal.aborted, false);
  };
  const finish = ({ name, mode, signal }) => {
    assert.equal(signal.aborted, false, signal.reason?.cause);
    const others = holders.get(name);
    others.splice(others.indexOf(mode), 1);
  };
  let isOver = false;
  let count = 0;
  const work = async (locks, number) => {
    for (let round = 0; !isOver; round++) {
      const mode = (round + number) % 5 === 0 ? 'shared' : 'exclusive';
      await locks.request(`${(round + number) % 3}`, { mode }, async (lock) => {
        begin(lock);
        count++;
        await new Promise(setImmediate);
        finish(lock);
      });
    }
  };
  const working = clients.flatMap((locks, number) => [work(locks, number), work(locks, number + 1)]);
  const all = Promise.all(working);
  const kills = amount('NAVLOCKS_KILLS', 10, 1000);
  for (let kill = 0; kill < kills; kill++) {
    const target = count + 50;
    while (count < target) await Promise.race([all, new Promise(setImmediate)]);
    await service.kill(ENDS[kill % 2]);
    await service.start();
  }
  isOver = true;
  await all;
  assert.deepEqual(await clients[0].query(), { held: [], pending: [] });
  await Promise.all(clients.map((locks) => locks.close()));
  await service.kill();
});

/** A worker thread that holds a lock. */
const HOLDER = `
  import { parentPort, workerData } from 'node:worker_threads';
  import { connect } from ${JSON.stringify(import.meta.resolve('navlocks'))};
  const locks = await connect(workerData);
  await locks.hold('held by a thread');
  parentPort.on('message', () => {});
  parentPort.postMessage('held');
`;

async function startHolder(url) {
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(HOLDER)}`), { workerData: url });
  assert.deepEqual(await once(worker, 'message'), ['held']);
  return worker;
}

test('the end of a worker thread ends its session although its process lives', async () => {
  const service = await Service.start();
  const locks = await connect(service.unix);
  const next = () => locks.request('held by a thread', () => 'granted');
  await (await startHolder(service.unix)).terminate();
  assert.equal(await next(), 'granted');
  // The same over a restart.
  const restarted = await startHolder(service.unix);
  await end(service, 'SIGKILL', locks);
  await service.start();
  const waiting = next();
  await locks.query();
  assert.equal((await locks.query()).pending.length, 1);
  await restarted.terminate();
  assert.equal(await waiting, 'granted');
  // While there is no service.
  const worker = await startHolder(service.unix);
  await end(service, 'SIGKILL', locks);
  await worker.terminate();
  await service.start();
  assert.equal(await next(), 'granted');
  await locks.close();
  await service.kill();
});

test('close() while the service is unreachable releases the locks after the restart', async () => {
  const service = await Service.start(['--lease', '2s']);
  for (const place of PLACES) {
    const [leaver, other] = await Promise.all([connect(service[place]), connect(service.unix)]);
    const held = await leaver.hold('left behind');
    await end(service, 'SIGKILL', leaver, other);
    await leaver.close();
    assert.deepEqual([held.held, await lost(held)], [false, 'ClientEnded']);
    await service.start();
    assert.equal(await other.request('left behind', () => 'granted'), 'granted');
    await other.close();
  }
  await service.kill();
});

test('sockets of presence are removed with their sessions', async () => {
  const service = await Service.start();
  const shown = () => readdirSync(join(service.folder, 'presence'));
  const [locks, other] = await Promise.all([connect(service.unix), connect(service.unix)]);
  await Promise.all([locks.query(), other.query()]);
  assert.equal(shown().length, 2);
  await end(service, 'SIGKILL', locks, other);
  await other.close();
  assert.equal(shown().length, 1);
  await service.start();
  await locks.query();
  assert.equal(shown().length, 1);
  await locks.close();
  assert.equal(shown().length, 0);
  await service.kill();
});

/** Returns the process of the service with its socket in this folder. */
function pidOf(folder) {
  const isIt = (pid) => {
    try {
      const given = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      return given[1] === 'serve' && given.some((text) => text.startsWith(folder));
    } catch {
      return false;
    }
  };
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).find(isIt);
}

test("start: the user's service is restarted when a client needs it, and locks are kept", async () => {
  const folder = join(scratch(), 'own');
  const before = process.env.NAVLOCKS_DIR;
  process.env.NAVLOCKS_DIR = folder;
  const stop = () => promisify(execFile)(command, ['stop', '--force']);
  try {
    const clients = await Promise.all([1, 2, 3].map(() => connect({ start: true, command })));
    const held = await Promise.all(clients.map((locks, number) => locks.hold(`held by ${number}`)));
    const waiting = clients[1].request('held by 0', () => 'granted');
    const kill = async () => process.kill(pidOf(folder), 'SIGKILL');
    for (const endIt of [kill, stop, kill]) {
      const noticed = clients.map((locks) => becomes(locks, 'unreachable'));
      await endIt();
      await Promise.all(noticed);
      assert.deepEqual(await claimedTokens(clients), held.map(({ fencingToken }) => fencingToken).toSorted());
    }
    for (const lock of held) assert.ok(lock.release());
    assert.equal(await waiting, 'granted');
    // Idle clients do not start a service.
    await clients[0].query();
    const noticed = clients.map((locks) => becomes(locks, 'unreachable'));
    await stop();
    await Promise.all(noticed);
    const failures = new Set();
    while (failures.size < 5) {
      failures.add(clients[2].connection.error);
      await new Promise(setImmediate);
    }
    assert.equal(pidOf(folder), undefined);
    assert.equal(await clients[2].request('a', () => 'granted'), 'granted');
    await Promise.all(clients.map((locks) => locks.close()));
    await stop();
  } finally {
    if (before === undefined) delete process.env.NAVLOCKS_DIR;
    else process.env.NAVLOCKS_DIR = before;
  }
});
