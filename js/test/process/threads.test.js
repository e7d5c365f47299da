// Worker threads: the cases inside a worker, and workers that are terminated at any moment.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { locks } from 'navlocks';
import { loadEngine } from '../../native/engine.js';
import { Dice } from '../support/dice.js';
import { amount } from '../support/soak.js';

/** Waits where the end of a worker reaches the engine by a message. */
async function untilWasmHas(test) {
  while (process.env.NAVLOCKS_ENGINE === 'wasm' && !test()) await new Promise(setImmediate);
}

test("the standard's cases pass in a worker thread, with other threads as clients", async (t) => {
  const worker = new Worker(new URL('../support/conformance-runner.js', import.meta.url), { workerData: { providerName: 'installed' } });
  const exit = once(worker, 'exit');
  let count = 0;
  worker.on('message', ({ id, title, passed, error }) => {
    count++;
    t.diagnostic(`${passed ? 'ok' : 'not ok'} ${id} ${title}`);
    if (!passed) t.diagnostic(error);
    assert.ok(passed, `${id} ${title}: ${error}`);
  });
  assert.deepEqual(await exit, [0]);
  assert.ok(count > 100, `only ${count} cases`);
});

/** Workers that request locks under load while one after the other is terminated. */
class Storm {
  constructor(dice, names) {
    this.dice = dice;
    this.names = names;
    this.memory = new SharedArrayBuffer(names * 8);
    this.workers = new Set();
    this.errors = [];
  }

  async start() {
    const { memory, names, dice } = this;
    const workerData = { memory, names, seed: dice.roll(2 ** 32) };
    const worker = new Worker(new URL('./stress-thread.js', import.meta.url), { workerData });
    worker.on('error', (error) => this.errors.push(error));
    await once(worker, 'message');
    this.workers.add(worker);
  }

  async killOne() {
    const worker = this.dice.pick([...this.workers]);
    this.workers.delete(worker);
    await worker.terminate();
  }

  /** Terminates a worker, starts another one, and waits for a grant. */
  async round() {
    const [, token] = await Promise.all([
      this.killOne(),
      locks.request(`stress ${this.dice.roll(this.names)}`, (lock) => lock.fencingToken),
      this.start(),
    ]);
    assert.ok(token > 0);
  }

  async stop() {
    await Promise.all(
      [...this.workers].map((worker) => {
        const exit = once(worker, 'exit');
        worker.postMessage('stop');
        return exit;
      }),
    );
  }

  /** Returns the number of violations of each name. */
  wrong() {
    const marks = new Int32Array(this.memory);
    return Array.from({ length: this.names }, (_, name) => marks[name * 2 + 1]);
  }
}

test('F122 G16 workers terminated at random while others queue: no waiter is lost, no lock is held twice', async (t) => {
  const dice = Dice.fromEnvironment();
  const rounds = amount('NAVLOCKS_ROUNDS', process.env.NAVLOCKS_ENGINE === 'wasm' ? 20 : 100, 2000);
  t.diagnostic(`NAVLOCKS_SEED=${dice.seed} NAVLOCKS_ROUNDS=${rounds}`);
  const storm = new Storm(dice, 3);
  await Promise.all([1, 2, 3, 4, 5, 6].map(() => storm.start()));
  // Concurrent rounds, so that workers end while others start.
  let round = 0;
  await Promise.all([1, 2, 3].map(async () => {
    while (round++ < rounds) await storm.round();
  }));
  // These requests wait for live workers only.
  const pass = () => Promise.all([0, 1, 2].map((name) => locks.request(`stress ${name}`, () => {})));
  await pass();
  await storm.stop();
  await pass();
  assert.deepEqual(storm.errors, []);
  assert.deepEqual(storm.wrong(), [0, 0, 0]);
  const { held, pending } = await locks.query();
  assert.deepEqual([...held, ...pending].filter(({ name }) => name.startsWith('stress')), []);
});

test('F120 thirty workers with locks and requests are terminated at once', async () => {
  const code = `
    import { locks } from ${JSON.stringify(import.meta.resolve('navlocks'))};
    import { parentPort, workerData } from 'node:worker_threads';
    for (let number = 0; number < 10; number++) {
      locks.request('crowd ' + (workerData + number) % 20, () => new Promise(() => {})).catch(() => {});
    }
    locks.request('crowd of all', () => new Promise(() => {})).catch(() => {});
    // A held lock alone does not keep a thread alive.
    setInterval(() => {}, 1000);
    parentPort.postMessage('ready');
  `;
  const url = new URL(`data:text/javascript,${encodeURIComponent(code)}`);
  const workers = [];
  for (let number = 0; number < 30; number++) {
    const worker = new Worker(url, { workerData: number });
    workers.push(worker);
    await once(worker, 'message');
  }
  const mine = locks.request('crowd of all', () => 'granted');
  assert.equal((await locks.query()).held.filter(({ name }) => name.startsWith('crowd')).length, 21);
  await Promise.all(workers.map((worker) => worker.terminate()));
  assert.equal(await mine, 'granted');
  const { held, pending } = await locks.query();
  assert.deepEqual([...held, ...pending].filter(({ name }) => name.startsWith('crowd')), []);
});

test('partition without clients is freed, and its tokens go on', async () => {
  const { engine } = loadEngine();
  const handle = engine.open('', 'counts', new Float64Array(1024), () => {});
  const spaces = () => engine.census(handle)[4];
  const before = spaces();
  const code = `
    import { locks } from ${JSON.stringify(import.meta.resolve('navlocks'))};
    import { parentPort } from 'node:worker_threads';
    const held = locks.partition('of a worker').request('a', (lock) => lock.fencingToken);
    parentPort.postMessage(await held);
    setInterval(() => {}, 1000);
  `;
  const url = new URL(`data:text/javascript,${encodeURIComponent(code)}`);
  let largest = 0;
  for (let round = 0; round < 3; round++) {
    const worker = new Worker(url);
    const [token] = await once(worker, 'message');
    assert.ok(token > largest, `${token} after ${largest}`);
    largest = token;
    assert.equal(spaces(), before + 1);
    await worker.terminate();
    await untilWasmHas(() => spaces() === before);
    assert.equal(spaces(), before);
  }
});
