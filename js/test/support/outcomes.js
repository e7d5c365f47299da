// Outcomes that tests wait for: failures, losses, and the state of a connection.

import assert from 'node:assert/strict';
import { once } from 'node:events';

/** Resolves with the error of a promise, and checks its name. */
export async function fails(promise, name) {
  const error = await promise.then(
    () => assert.fail('it was not rejected'),
    (reason) => reason,
  );
  assert.equal(error.name, name, error);
  return error;
}

/** Resolves with the cause when a lock is lost. */
export async function lost({ signal }) {
  if (!signal.aborted) await once(signal, 'abort');
  return signal.reason.cause;
}

/** Resolves when the connection has this state. Keeps the process alive meanwhile. */
export async function becomes({ connection }, state) {
  const alive = setInterval(() => {}, 1000);
  while (connection.state !== state) await once(connection, 'change');
  clearInterval(alive);
}
