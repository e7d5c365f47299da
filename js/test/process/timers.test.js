// Locks under the fake timers of a test runner: they use the real clock.

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { connect, locks } from 'navlocks';
import { Service } from '../support/service.js';

/** So many requests in a row that the event loop gets a turn, by setImmediate(). */
const REQUESTS = 200;

async function tryLocks(own) {
  for (let count = 0; count < REQUESTS; count++) await own.request('a', () => {});
  const held = await own.hold('a');
  await assert.rejects(own.hold('a', { timeout: 20 }), { name: 'TimeoutError' });
  held.release();
}

test('locks of a process and of a service work while timers are mocked', async (t) => {
  const service = await Service.start(['--lease', '1s']);
  t.after(() => service.kill());
  const remote = await connect(service.tcp);
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'setImmediate', 'Date'], now: 0 });
  try {
    const held = await remote.hold('b');
    // An hour is longer than every lease.
    mock.timers.tick(3_600_000);
    await tryLocks(locks);
    await tryLocks(remote);
    assert.deepEqual([held.held, held.release()], [true, true]);
    await remote.close();
  } finally {
    mock.timers.reset();
  }
});
