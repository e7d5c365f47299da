// A worker that requests locks without end, until it is killed or told to stop.
//
// Holders leave their mark in shared memory: two at a time would find each other's. A mark that a killed holder left behind is
// simply overwritten.

import { parentPort, workerData } from 'node:worker_threads';
import { locks } from 'navlocks';
import { Dice } from './dice.js';

const { seed, memory, names } = workerData;
const dice = new Dice(seed);

// Of each name: the token of the last writer, and how often something was wrong.
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

/** Most holders keep their lock for a while, so that others queue and processors are free for those who start and die. */
async function pause() {
  const way = dice.roll(4);
  if (way === 0) return;
  await new Promise((resolve) => (way === 1 ? setImmediate(resolve) : setTimeout(resolve, dice.roll(30))));
}

/** A writer's token is larger than that of every writer before, and stays as long as it writes. */
function write(name, token) {
  const before = Atomics.exchange(marks, name * FIELDS + WRITER, token);
  return () => before < token && Atomics.load(marks, name * FIELDS + WRITER) === token;
}

/** Nobody writes while somebody reads. */
function read(name) {
  const before = Atomics.load(marks, name * FIELDS + WRITER);
  return () => Atomics.load(marks, name * FIELDS + WRITER) === before;
}

parentPort.postMessage('ready');
while (!stop) await Promise.all([one(), one(), one()]);
parentPort.close();
