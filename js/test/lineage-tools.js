// What the tests of the older APIs share.

import assert from 'node:assert/strict';
import { locks } from 'navlocks';
import { acquire, query } from 'navlocks/lineage';

let counter = 0;
export const unique = () => `lineage ${++counter}`;

export async function rejection(promise) {
  return promise.then(
    (value) => assert.fail(`fulfilled with ${value}`),
    (error) => error,
  );
}

/** A promise with its resolve and reject. */
export function deferred() {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}

/** Waits until all that is under way in this thread has happened. */
export async function quiet() {
  for (let count = 0; count < 3; count++) await new Promise((resolve) => setImmediate(resolve));
}

export const available = (name, mode = 'exclusive') => locks.request(name, { mode, ifAvailable: true }, (lock) => lock !== null);

export const about = async (...names) => {
  const { held, pending } = await query();
  return [held, pending].map((rows) => rows.filter(({ name }) => names.includes(name)).map(({ name, mode }) => `${mode} ${name}`));
};

/** acquire() that holds until told. */
export function acquired(name, options = {}) {
  const { promise, resolve } = deferred();
  const result = { release: resolve };
  result.granted = new Promise((granted) => {
    result.done = acquire(name, options, (lock) => {
      granted(lock);
      return promise;
    });
  });
  result.done.catch(() => {});
  return result;
}
