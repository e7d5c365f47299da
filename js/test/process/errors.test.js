// Errors as a programmer sees them: stacks, causes, bad options, leaked handles and printed locks.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { inspect } from 'node:util';
import { connect, locks } from 'navlocks';
import { scratch, Service } from '../support/service.js';

const MODULE = JSON.stringify(import.meta.resolve('navlocks'));

async function rejection(promise) {
  return promise.then(
    (value) => assert.fail(`fulfilled with ${value}`),
    (error) => error,
  );
}

async function run(text, { flags = [], env = {} } = {}) {
  const program = `import { connect, locks } from ${MODULE};\n${text}`;
  return promisify(execFile)(process.execPath, [...flags, '--input-type=module', '--eval', program], { timeout: 60_000, env: { ...process.env, ...env } });
}

test('stacks of errors include the functions that await the request', async () => {
  async function innermost(options) {
    return await locks.hold('stack', options);
  }
  async function outermost(options) {
    await innermost(options);
  }
  const held = await locks.hold('stack');
  const late = await rejection(outermost({ timeout: 5 }));
  const never = await rejection(outermost({ timeout: 0 }));
  held.release();
  async function robbed() {
    await locks.request('stack', () => locks.request('stack', { steal: true }, () => {}));
  }
  const lost = await rejection(robbed());
  for (const { name, message, stack } of [late, never]) {
    assert.match(stack, new RegExp(`^${name}: ${message}\n`));
    assert.match(stack, /at async innermost .*errors\.test\.js/);
    assert.match(stack, /at async outermost .*errors\.test\.js/);
  }
  assert.match(lost.stack, /at async robbed .*errors\.test\.js/);
});

test('a lock shows its name, its mode and whether it is held', async () => {
  const handle = await locks.hold('shown', { mode: 'shared' });
  const token = handle.fencingToken;
  assert.equal(inspect(handle), `LockHandle { name: 'shown', mode: 'shared', held: true, fencingToken: ${token} }`);
  handle.release();
  assert.equal(inspect(handle), `LockHandle { name: 'shown', mode: 'shared', held: false, fencingToken: ${token} }`);
  await locks.request('shown', (lock) => assert.match(inspect({ lock }), /lock: ExtendedLock \{ name: 'shown', mode: 'exclusive', held: true,/));
});

test('a garbage-collected handle with a held lock warns, with the stack of its creation on request', async () => {
  const program = `
    const released = await locks.hold('released');
    released.release();
    async function forget() {
      await locks.hold('forgotten');
    }
    await forget();
    const kept = await locks.hold('kept');
    const warned = new Promise((resolve) => process.on('warning', resolve));
    const again = setInterval(() => gc(), 20);
    const { name, message } = await warned;
    clearInterval(again);
    console.log(name, message, kept.held);
  `;
  const plain = await run(program, { flags: ['--expose-gc'] });
  assert.equal(plain.stdout, "NavlocksWarning a LockHandle was garbage collected and its lock 'forgotten' is still held: release() or dispose of it true\n");
  const traced = await run(program, { flags: ['--expose-gc'], env: { NAVLOCKS_TRACE_HANDLES: '1' } });
  assert.match(traced.stdout, /was created here: Error: hold of 'forgotten'[^]*at forget/);
});

test('errors about bad options say what to write', async () => {
  for (const [options, says] of [
    [{ lease: 1 }, /'lease' is 1 ms, and 100 ms is the least/],
    [{ ca: '/etc/ssl/ca.pem' }, /'ca' has no certificate in PEM form/],
    [{ ca: new Uint8Array([1, 2, 3]) }, /'ca' has no certificate in PEM form/],
  ]) {
    const { name, message } = await rejection(connect('wss://127.0.0.1:1', options));
    assert.equal(name, 'TypeError');
    assert.match(message, says);
  }
});

test('connect() without a service says how to start one', async () => {
  const { stdout } = await run('await connect().catch(({ name, message, cause }) => console.log(name, cause, message));', { env: { NAVLOCKS_DIR: scratch() } });
  assert.match(stdout, /^NetworkError unreachable the lock service cannot be reached: connect ENOENT .*: connect\(\{ start: true \}\) starts/);
});

test('a folder that is too long for the sockets in it is refused', async () => {
  const folder = `/${'x'.repeat(87)}`;
  const { stdout } = await run('await connect().catch(({ name, cause, message }) => console.log(name, cause, message));', { env: { NAVLOCKS_DIR: folder } });
  assert.match(stdout, /^NetworkError unreachable .*is too long for the sockets in it: set NAVLOCKS_DIR to one of at most 87 bytes/);
});

test('every cause is in the types and on the page about outages', async () => {
  const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');
  const types = read('../../index.d.ts');
  const page = read('../../../docs/javascript/outages.md');
  const codes = [...read('../../service/refusals.js').matchAll(/^ {2}'?([a-z-]+)'?: \{ error/gm)].map(([, code]) => code);
  const losses = [...read('../../standard/entry.js').matchAll(/case '(\w+)':/g)].map(([, loss]) => loss);
  assert.ok(codes.length > 15 && losses.length > 5);
  for (const cause of [...codes, ...losses]) {
    assert.ok(types.includes(`| '${cause}'`), `index.d.ts has no '${cause}'`);
    assert.ok(page.includes(`\`${cause}\``), `outages.md has no \`${cause}\``);
  }
});

test('a request refused for a deadlock names its clients and requests', async (t) => {
  const service = await Service.start(['--deadlocks', 'refuse']);
  t.after(() => service.kill());
  const [one, two] = [await connect(service.unix), await connect(service.unix)];
  const [a, b] = [await one.hold('a'), await two.hold('b')];
  const waiting = one.hold('b', { within: a });
  await one.query();
  const { cause } = await rejection(two.hold('a', { within: b }));
  assert.deepEqual([cause.code, cause.clients.length, cause.ids.length, cause.certain], ['deadlock', 2, 4, true]);
  b.release();
  (await waiting).release();
  a.release();
  await Promise.all([one.close(), two.close()]);
});
