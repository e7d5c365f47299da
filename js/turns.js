// Turns in Node, for deliveries.
//
// A tick after the promise jobs costs a tenth of a turn of Node's event loop; one in many takes that, so that timers and I/O
// never starve. One turn mostly leads to the next: its callback ends, and the lock is granted again. Then the promise jobs
// are run from here, as Node does between two timers, which costs less than another tick.

import { setImmediate } from 'node:timers';

// Taken now: fake timers of a test runner replace them.
const { nextTick } = process;
const { queueMicrotask } = globalThis;

/**
 * Runs all ticks and promise jobs that are ready: a request in sequence takes 970 ns with it, and 1,200 ns without. Node does not
 * document the function. Where it is missing, is another one, or warns (`--pending-deprecation`), each turn is a tick of its own.
 */
const runJobs = process._tickCallback?.name === 'runNextTicks' ? process._tickCallback : undefined;

/** How many turns may pass before the event loop gets one. */
const STREAK_MAX = 64;

/** Whether a series of turns is under way in this thread. There is never another one within its jobs, so the stack stays flat. */
let inSeries = false;

export function createTurns(turn) {
  let streak = 0;
  let isMine = false;
  let isWanted = false;

  function begin() {
    if (inSeries || runJobs === undefined) turn();
    else series();
  }

  function series() {
    inSeries = true;
    isMine = true;
    try {
      do {
        isWanted = false;
        turn();
        runJobs();
      } while (isWanted && ++streak < STREAK_MAX);
    } finally {
      // Also when one of the jobs throws, which is not ours to handle.
      inSeries = false;
      isMine = false;
      if (isWanted) yieldToLoop();
    }
  }

  function yieldToLoop() {
    streak = 0;
    isWanted = false;
    setImmediate(begin);
  }

  // Asked for among promise jobs, a tick comes after the last of them.
  const tick = () => nextTick(begin);
  return () => {
    if (isMine) isWanted = true;
    else if (++streak < STREAK_MAX) queueMicrotask(tick);
    else yieldToLoop();
  };
}
