// The results of a public test: those of its subtests, and of the test as a whole.

/** The name of the result of the whole test. */
export const WHOLE = 'the test ends as it should';

/** The status of a passed test in testharness.js. */
const PASSED = 0;

export function subtestsOf({ status, message, subtests }) {
  return [{ name: WHOLE, status, message }, ...subtests].map(({ name, status, message }) => ({ name, passed: status === PASSED, message }));
}
