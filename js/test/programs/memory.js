// Many names used once each, some at once, some aborted: how much memory is left behind?

import { locks } from 'navlocks';

const [rounds] = process.argv.slice(2).map(Number);
const BATCH = 1000;
let next = 0;

async function use(batches) {
  for (let batch = 0; batch < batches; batch++) {
    const requests = Array.from({ length: BATCH }, () => locks.request(`a name that is used once, number ${next++}`, () => {}));
    const controller = new AbortController();
    const held = locks.request(`held ${batch}`, () => new Promise((resolve) => setImmediate(resolve)));
    const aborted = locks.request(`held ${batch}`, { signal: controller.signal }, () => {}).catch(() => {});
    controller.abort();
    await Promise.all([...requests, held, aborted]);
  }
}

function measure() {
  globalThis.gc();
  globalThis.gc();
  const { rss, heapUsed, arrayBuffers } = process.memoryUsage();
  return { rss, heapUsed, arrayBuffers };
}

await use(50);
const before = measure();
await use(rounds / BATCH);
const after = measure();
console.log(JSON.stringify({ before, after }));
