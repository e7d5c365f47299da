// A clock that a test sets forward. Import it before the package, which binds the clock once.

const now = performance.now.bind(performance);
let ahead = 0;

performance.now = () => now() + ahead;

/** Lets so many milliseconds pass at once. */
export function pass(milliseconds) {
  ahead += milliseconds;
}
