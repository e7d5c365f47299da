// Assertions without a platform: the same cases run in Node, in workers and in pages.

export class Failed extends Error {
  name = 'Failed';
}

export function ok(value, message) {
  if (!value) throw new Failed(message ?? `${show(value)} is not true`);
}

export function equal(actual, expected, message = '') {
  if (!Object.is(actual, expected)) throw new Failed(`${message} ${show(actual)} instead of ${show(expected)}`.trim());
}

/** Checks that two values are equal as JSON. */
export function same(actual, expected, message = '') {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Failed(`${message} ${a} instead of ${b}`.trim());
}

/**
 * Checks that a promise rejects with an error of this name, or with this value. Returns the error.
 */
export async function rejects(promise, expected, message = '') {
  ok(promise instanceof Promise, `${message} no promise was returned`);
  let value;
  try {
    value = await promise;
  } catch (error) {
    if (typeof expected === 'string') equal(error?.name, expected, `${message} rejected with`);
    else if (expected) equal(error, expected.value, `${message} rejected with`);
    return error;
  }
  throw new Failed(`${message} fulfilled with ${show(value)} instead of being rejected`);
}

export function throws(work, expected, message = '') {
  let value;
  try {
    value = work();
  } catch (error) {
    ok(error instanceof expected, `${message} threw ${show(error)}`);
    return error;
  }
  throw new Failed(`${message} returned ${show(value)} instead of throwing`);
}

function show(value) {
  try {
    return typeof value === 'string' ? JSON.stringify(value) : String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}
