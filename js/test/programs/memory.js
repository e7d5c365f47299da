// Uses names once each, some concurrently, some aborted, and prints the memory after each round.
// node --expose-gc memory.js ROUNDS NAMES

import { locks } from 'navlocks';
import { loadEngine } from '../../native/engine.js';

const [rounds, names] = process.argv.slice(2).map(Number);
const BATCH = 1000;
let next = 0;

// A client of the same lock space, which counts its contents.
const { engine } = loadEngine();
const handle = engine.open('', 'counts', new Float64Array(1024), () => {});

async function use(batches) {
  for (let batch = 0; batch < batches; batch++) {
    const requests = Array.from({ length: BATCH - 2 }, () => {
      const number = `${next++}`.padStart(100, ' so that it would be missed, number ');
      return locks.request(`a name that is used once, and long${number}`, { tag: number }, () => {});
    });
    const controller = new AbortController();
    const held = locks.request(`held ${batch}`, () => new Promise((resolve) => setImmediate(resolve)));
    const aborted = locks.request(`held ${batch}`, { signal: controller.signal }, () => {}).catch(() => {});
    controller.abort();
    await Promise.all([...requests, held, aborted]);
  }
}

async function settled() {
  // Waits for the last tasks, which may still refer to entries of the round.
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  globalThis.gc();
  globalThis.gc();
  const { rss, heapUsed } = process.memoryUsage();
  const [kept, requests, bytes, mail] = engine.census(handle);
  return { rss, heapUsed, kept, requests, bytes, mail };
}

const figures = [];
for (let round = 0; round < rounds; round++) {
  await use(names / BATCH);
  figures.push(await settled());
}
console.log(JSON.stringify(figures));
