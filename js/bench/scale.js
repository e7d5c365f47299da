// Clients of the suite `scale`: sessions with a lock each in one process, as the ones in Rust are.

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { connect } from 'navlocks';

/** Sessions that connect at a time. */
const CONNECTING_MAX = 32;
/** For a grant after a node was killed. */
const GRANT_MAX = 120_000;

const [url, file, ...numbers] = process.argv.slice(2);
const [first, count, partitions] = numbers.map(Number);
const ca = file === '' ? undefined : readFileSync(file);

const sessions = [];
let next = first;

async function connectSome() {
  while (next < first + count) {
    const number = next++;
    const options = { partition: `p${number % partitions}`, unreachableAfter: Infinity, ca };
    const locks = await connect(url, options);
    sessions.push({ number, locks, lock: await locks.hold(`own${number}`) });
  }
}

/** Requests a free name in each partition. Returns the slowest time, and how many failed. */
async function probe() {
  const start = process.hrtime.bigint();
  const signal = AbortSignal.timeout(GRANT_MAX);
  const probes = sessions.filter(({ number }) => number < partitions);
  const grants = probes.map(({ locks }) => locks.request('new', { signal }, () => {}));
  const ends = await Promise.allSettled(grants);
  return [process.hrtime.bigint() - start, ends.filter(({ status }) => status === 'rejected').length];
}

await Promise.all(Array.from({ length: CONNECTING_MAX }, connectSome));
console.log(count);
let slowest = [0n, 0];
for await (const word of createInterface({ input: process.stdin })) {
  if (word === 'killed') slowest = await probe();
  const lost = sessions.filter(({ lock }) => !lock.held).length;
  const silent = sessions.filter(({ locks }) => locks.connection.state !== 'connected').length;
  console.log(`${slowest[0]} ${slowest[1]} ${lost} ${silent}`);
}
process.exit();
