// A clock that a test sets forward. Imported before the package, which reads the clock at its start.

const now = performance.now.bind(performance);
let ahead = 0;

performance.now = () => now() + ahead;

/** Lets so many milliseconds pass at once. */
export function pass(milliseconds) {
  ahead += milliseconds;
}
