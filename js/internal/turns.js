// The turns of deliveries in Node.
//
// A tick after the promise jobs costs a tenth of a turn of Node's event loop. Some turns use the
// event loop all the same, against starvation of timers and I/O.

import { setImmediate } from 'node:timers';

// Read now: fake timers of a test runner replace them.
const { nextTick } = process;
const { queueMicrotask } = globalThis;

/**
 * Runs all ready ticks and promise jobs: 970 ns a request, and 1,200 ns by another tick. Node does
 * not document it; without it each turn is a tick.
 */
const runJobs = process._tickCallback?.name === 'runNextTicks' ? process._tickCallback : undefined;

/** Turns in a row before the event loop gets one. */
const STREAK_MAX = 64;

/**
 * Whether this thread runs a series of turns. Its jobs begin no other one: the stack stays flat.
 */
let inSeries = false;

export function createTurns(turn) {
  let streak = 0;
  let isOwnSeries = false;
  let isScheduled = false;

  function begin() {
    if (inSeries || runJobs === undefined) turn();
    else series();
  }

  function series() {
    inSeries = true;
    isOwnSeries = true;
    try {
      do {
        isScheduled = false;
        turn();
        runJobs();
      } while (isScheduled && ++streak < STREAK_MAX);
    } finally {
      // A job may throw, which is not this module's to handle.
      inSeries = false;
      isOwnSeries = false;
      if (isScheduled) yieldToLoop();
    }
  }

  function yieldToLoop() {
    streak = 0;
    isScheduled = false;
    setImmediate(begin);
  }

  // A tick that is requested in a promise job runs after the last promise job.
  const tick = () => nextTick(begin);
  return () => {
    if (isOwnSeries) isScheduled = true;
    else if (++streak < STREAK_MAX) queueMicrotask(tick);
    else yieldToLoop();
  };
}
