// The silence of a connected service, with a clock that the test sets forward.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pass } from './clock.js';

const { Silence } = await import('../silence.js');

test('a silent service gets a ping after half of the limit, and its waiters fail at the end', () => {
  const silence = new Silence(8000);
  assert.equal(silence.dueIn, Infinity);
  assert.deepEqual([silence.begin(), silence.begin()], [true, false]);
  pass(3900);
  assert.equal(silence.look(true), undefined);
  pass(100);
  assert.equal(silence.look(true), 'ping');
  pass(3900);
  assert.equal(silence.look(true), undefined);
  // Every message breaks the silence.
  silence.received();
  pass(3900);
  assert.equal(silence.look(true), undefined);
  for (const due of ['ping', 'end']) {
    pass(4000);
    assert.equal(silence.look(true), due);
  }
  assert.equal(silence.dueIn, Infinity);
});

test('a service that no client waits for may be silent', () => {
  const silence = new Silence(8000);
  silence.begin();
  pass(4000);
  assert.equal(silence.look(false), undefined);
  assert.equal(silence.dueIn, Infinity);
  assert.equal(silence.begin(), true);
});

test('a client without patience gives a connected service a second', () => {
  assert.deepEqual([new Silence(0).limit, new Silence(Infinity).limit], [1000, Infinity]);
});
