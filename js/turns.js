// Turns in Node, for deliveries.
//
// A tick after the promise jobs costs a tenth of a turn of Node's event loop; one in many takes that, so that timers and I/O
// never starve.

import { setImmediate } from 'node:timers';

const { nextTick } = process;

/** How many turns may pass before the event loop gets one. */
const STREAK_MAX = 64;

export function createTurns(turn) {
  let streak = 0;
  // Asked for among promise jobs, a tick comes after the last of them.
  const tick = () => nextTick(turn);
  return () => {
    if (++streak < STREAK_MAX) {
      queueMicrotask(tick);
    } else {
      streak = 0;
      setImmediate(turn);
    }
  };
}
