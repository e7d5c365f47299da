// A worker that requests locks until it is killed or stopped.
//
// Holders write their token to shared memory, so that two concurrent holders would notice each
// other.

import { parentPort, workerData } from 'node:worker_threads';
import { locks } from 'navlocks';
import { Dice } from '../support/dice.js';

const { seed, memory, names } = workerData;
const dice = new Dice(seed);

// For each name: the token of the last writer, and the number of violations.
const marks = new Int32Array(memory);
const WRITER = 0;
const WRONG = 1;
const FIELDS = 2;

let stop = false;
parentPort.on('message', () => {
  stop = true;
});

async function one() {
  const name = dice.roll(names);
  const mode = dice.pick(['exclusive', 'shared']);
  const { signal } = new AbortController();
  const options = dice.pick([
    { mode },
    { mode, signal },
    { mode, ifAvailable: true },
    { mode, signal: AbortSignal.timeout(dice.roll(5)) },
  ]);
  try {
    await locks.request(`stress ${name}`, options, async (lock) => {
      if (lock === null) return;
      const check = mode === 'exclusive' ? write(name, lock.fencingToken) : read(name);
      await pause();
      if (!check()) Atomics.add(marks, name * FIELDS + WRONG, 1);
    });
  } catch (error) {
    if (error.name !== 'TimeoutError') throw error;
  }
}

/** Keeps most locks for a while, so that queues form and processors are free for other workers. */
async function pause() {
  const way = dice.roll(4);
  if (way === 0) return;
  await new Promise((resolve) => (way === 1 ? setImmediate(resolve) : setTimeout(resolve, dice.roll(30))));
}

/** Returns a check that the writer's token is the largest, and that no other writer replaced it. */
function write(name, token) {
  const before = Atomics.exchange(marks, name * FIELDS + WRITER, token);
  return () => before < token && Atomics.load(marks, name * FIELDS + WRITER) === token;
}

/** Returns a check that no writer was active meanwhile. */
function read(name) {
  const before = Atomics.load(marks, name * FIELDS + WRITER);
  return () => Atomics.load(marks, name * FIELDS + WRITER) === before;
}

parentPort.postMessage('ready');
while (!stop) await Promise.all([one(), one(), one()]);
parentPort.close();
