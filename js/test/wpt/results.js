// What a public test found, as a list: its subtests, and itself as one of them.

/** The name of the subtest that a whole test is. */
export const WHOLE = 'the test ends as it should';

/** testharness.js says 0 of what passed. */
const PASSED = 0;

export function subtestsOf({ status, message, subtests }) {
  return [{ name: WHOLE, status, message }, ...subtests].map(({ name, status, message }) => ({ name, passed: status === PASSED, message }));
}
