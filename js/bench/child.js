// Runs one case on one side and prints its number: child.js SIDE CASE SIZE

import { once } from 'node:events';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { cases } from './cases.js';

const [side, name, size] = isMainThread ? process.argv.slice(2) : workerData;
const { run, threads = 0 } = cases[name];

const tools = {
  /** Returns the memory after garbage collection, which frees pages later on its own threads. */
  async rss() {
    for (let round = 0; round < 5; round++) {
      globalThis.gc();
      await sleep(50);
    }
    return process.memoryUsage().rss;
  },
};

async function measure() {
  const locks = side === 'navlocks' ? (await import('../index.js')).locks : navigator.locks;
  return run(locks, Number(size), tools);
}

async function measureInThreads() {
  const workers = Array.from({ length: threads }, () => new Worker(new URL(import.meta.url), { workerData: [side, name, size] }));
  await Promise.all(workers.map((worker) => once(worker, 'message')));
  const numbers = workers.map((worker) => once(worker, 'message'));
  for (const worker of workers) worker.postMessage('go');
  const [[number]] = await Promise.all(numbers);
  return number;
}

if (isMainThread) {
  console.log(threads === 0 ? await measure() : await measureInThreads());
  // Some locks are held for ever, so the process would not end.
  process.exit(0);
} else {
  // A waiter does not keep every runtime alive.
  const alive = setInterval(() => {}, 1000);
  parentPort.postMessage('ready');
  await once(parentPort, 'message');
  parentPort.postMessage(await measure());
  clearInterval(alive);
}
