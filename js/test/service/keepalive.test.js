// The silence of a connected service, and the pings that keep a lease, in virtual time.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Keepalive } from '../../service/keepalive.js';
import { Lease } from '../../service/lease.js';

test('a silent service gets a ping after half of the limit, and its waiters fail at the end', () => {
  const keepalive = new Keepalive(8000);
  assert.equal(keepalive.deadline, Infinity);
  keepalive.begin(0);
  keepalive.begin(2000);
  assert.deepEqual([keepalive.deadline, keepalive.elapsed(3999), keepalive.elapsed(4000)], [4000, undefined, 'ping']);
  assert.equal(keepalive.elapsed(7999), undefined);
  // Every message breaks the silence.
  keepalive.received(7999);
  assert.equal(keepalive.elapsed(11_998), undefined);
  assert.deepEqual([keepalive.elapsed(12_000), keepalive.elapsed(16_000)], ['ping', 'give-up']);
  assert.equal(keepalive.deadline, Infinity);
});

test('a service that no client waits for may be silent', () => {
  const keepalive = new Keepalive(8000);
  keepalive.received(0);
  assert.equal(keepalive.deadline, Infinity);
  keepalive.begin(0);
  keepalive.stop();
  keepalive.begin(5000);
  assert.equal(keepalive.deadline, 9000);
});

test('a client with a limit of 0 gives a connected service a second', () => {
  assert.deepEqual([new Keepalive(0).limit, new Keepalive(Infinity).deadline], [1000, Infinity]);
});

test('a ping is due when a quarter of the belief is used, and leaves 5/8 of the lease', () => {
  const length = 32_000;
  const lease = new Lease(length, 100_000);
  const roundTrip = length / 32;
  for (let count = 0; count < 10; count += 1) {
    const sent = lease.pingAt;
    // The connection breaks before the answer comes.
    assert.equal(lease.until - (sent + roundTrip), (length / 8) * 5);
    const ping = lease.ping(sent);
    assert.equal(lease.pingAt, sent + 7000);
    lease.pong(ping);
  }
  // The welcome came late: its hello counts.
  assert.equal(new Lease(length, 100_000).pingAt, 107_000);
});
