// The clock of sessions: it runs while the machine sleeps, and nothing sets it back.

// Read now: fake timers of a test runner replace the clocks, and a lease needs the real ones.
const wallNow = Date.now;
const steadyNow = performance.now.bind(performance);

/** A wall clock that gains so much at once on the steady one: the machine slept. */
const LEAP_MS = 200;

let slept = 0;
let difference = wallNow() - steadyNow();

/** Returns the milliseconds since any start. */
export function now() {
  const steady = steadyNow();
  const current = wallNow() - steady;
  if (current - difference > LEAP_MS) slept += current - difference;
  difference = current;
  return steady + slept;
}
