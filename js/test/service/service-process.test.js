// Processes as clients of a service: when they stay alive, how they end, and mutual exclusion.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { connect } from 'navlocks';
import { pathOf, Program } from '../support/program.js';
import { command, scratch, Service } from '../support/service.js';

const service = await Service.start(['--lease', '2s']);
const locks = await connect(service.unix);

async function run(program, given, env = {}) {
  const options = { timeout: 600_000, env: { ...process.env, ...env } };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [pathOf(program), ...given], options);
  assert.equal(stderr, '');
  return stdout.trim();
}

test('S17 decision 8: idle connections and held locks keep no process alive, and a process that ends says bye', async () => {
  // Without a bye the lock would stay held beyond the end of this test.
  const patient = await Service.start(['--lease', '1h', '--lease-max', '1h']);
  const other = await connect(patient.unix);
  for (const url of [patient.unix, patient.tcp]) {
    assert.equal(await run('service-idle.js', [url]), 'end');
    assert.equal(await other.request('held at the end', () => 'granted'), 'granted');
  }
  await other.close();
  await patient.kill();
});

test('M2: a release is sent before the awaiting caller continues, even if that blocks the thread', async () => {
  for (const url of [service.unix, service.tcp]) {
    assert.equal(await run('service-blocking.js', [url]), 'granted');
  }
});

test('S17 decision 8: a pending request keeps a process alive', async () => {
  for (const url of [service.unix, service.tcp]) {
    const held = await locks.hold('pending');
    const program = new Program('service-pending.js', [url]);
    assert.equal(await program.line(), 'waiting');
    held.release();
    assert.equal(await program.line(), 'granted');
    assert.deepEqual(await program.exit, [0, null]);
  }
});

test('X29 F125 two processes contend for one lock, and one is killed', async () => {
  for (const url of [service.unix, service.tcp]) {
    const first = new Program('service-holder.js', [url, 2000]);
    assert.equal(await first.line(), 'requested');
    assert.equal(await first.line(), 'held');
    const second = new Program('service-holder.js', [url, 2000]);
    assert.equal(await second.line(), 'requested');
    assert.equal((await locks.query()).pending.length, 1);
    await first.kill();
    assert.equal(await second.line(), 'held');
    await second.kill();
    assert.equal(await locks.request('held', () => 'granted'), 'granted');
  }
});

test('a process that is stopped beyond its lease loses its lock, and knows it when it continues', async () => {
  const program = new Program('service-holder.js', [service.tcp, 1000]);
  assert.equal(await program.line(), 'requested');
  assert.equal(await program.line(), 'held');
  program.child.kill('SIGSTOP');
  const next = await locks.hold('held');
  // The answer is the same before and after timers run.
  program.child.stdin.write('?');
  program.child.kill('SIGCONT');
  const lines = [await program.line(), await program.line()].toSorted();
  assert.deepEqual(lines, ['answer false', 'lost LeaseLapsed false']);
  assert.ok(next.release());
  await program.kill();
});

test('child processes and a cluster exclude each other', async () => {
  for (const url of [service.unix, service.tcp]) {
    const file = join(scratch(), 'number');
    writeFileSync(file, '0');
    const children = [1, 2].map(() => run('service-counter.js', [url, file, '20']));
    const workers = run('service-cluster.js', [], { COUNTER_URL: url, COUNTER_FILE: file });
    await Promise.all([...children, workers]);
    assert.equal(readFileSync(file, 'utf8'), '100');
  }
});

test('connect() takes the address among its options, as install() does', async () => {
  for (const url of [service.unix, service.tcp]) {
    const [one, other] = await Promise.all([connect({ url }), connect(url)]);
    const held = await one.hold('among-options');
    assert.equal(await other.request('among-options', { ifAvailable: true }, (lock) => lock), null);
    assert.ok(held.release());
    await Promise.all([one.close(), other.close()]);
  }
  await assert.rejects(connect({ url: 'http://host' }), { name: 'SyntaxError' });
  await assert.rejects(connect({ url: service.unix, start: true }), { name: 'TypeError' });
});

test("connect() finds the user's own service, and starts it with the option start", async () => {
  const folder = join(scratch(), 'own');
  const before = process.env.NAVLOCKS_DIR;
  process.env.NAVLOCKS_DIR = folder;
  try {
    await assert.rejects(connect(), { name: 'NetworkError' });
    await assert.rejects(connect({ start: true, command: 'no-such-command' }), { name: 'NetworkError', message: /no-such-command/ });
    const [one, two] = await Promise.all([connect({ start: true, command }), connect({ start: true, command })]);
    const found = await connect();
    const held = await one.hold('a');
    assert.equal(await found.request('a', { ifAvailable: true }, (lock) => lock), null);
    assert.deepEqual((await two.query()).held.map(({ name }) => name), ['a']);
    held.release();
    await found.close();
    // The client restarts it. By force, because the starting command may still hold its lock.
    await promisify(execFile)(command, ['stop', '--force']);
    assert.equal(await two.request('a', () => 'granted'), 'granted');
    await Promise.all([one.close(), two.close()]);
    chmodSync(folder, 0o755);
    await assert.rejects(connect(), { name: 'SecurityError', message: /chmod 700/ });
    chmodSync(folder, 0o700);
    await promisify(execFile)(command, ['stop', '--force']);
  } finally {
    if (before === undefined) delete process.env.NAVLOCKS_DIR;
    else process.env.NAVLOCKS_DIR = before;
  }
});

test.after(async () => {
  await locks.close();
  await service.kill();
});
