// Deliveries: the order and the turn of each.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Deliveries } from '../../internal/delivery.js';

/** Creates deliveries whose turns begin by `next()`, and the list of what was delivered. */
function createManual() {
  const turns = [];
  const delivered = [];
  const deliveries = new Deliveries((turn) => () => turns.push(turn));
  const deliver = (entry, value) => delivered.push(`${entry} ${value}`);
  return {
    delivered,
    deliveries,
    add: (entry, value) => deliveries.add(deliver, entry, value),
    next: () => turns.shift()?.(),
    scheduled: () => turns.length,
  };
}

test('each delivery has a turn of its own, in order', () => {
  const { delivered, add, next, scheduled } = createManual();
  add('a', 1);
  add('b', 2);
  assert.deepEqual([delivered, scheduled()], [[], 1]);
  next();
  assert.deepEqual([delivered, scheduled()], [['a 1'], 1]);
  next();
  assert.deepEqual([delivered, scheduled()], [['a 1', 'b 2'], 0]);
});

test('the first delivery of a message uses its turn, after the whole message, and others get their own', () => {
  const { delivered, deliveries, add, next, scheduled } = createManual();
  const handle = (message) => {
    for (const entry of message) add(entry, 'granted');
    assert.deepEqual(delivered, []);
  };
  deliveries.within(handle, ['a', 'b']);
  assert.deepEqual([delivered, scheduled()], [['a granted'], 1]);
  next();
  assert.deepEqual([delivered, scheduled()], [['a granted', 'b granted'], 0]);
});

test('a message does not overtake earlier deliveries', () => {
  const { delivered, deliveries, add, next } = createManual();
  add('earlier', 1);
  deliveries.within(() => add('later', 2));
  assert.deepEqual(delivered, []);
  next();
  next();
  assert.deepEqual(delivered, ['earlier 1', 'later 2']);
});

test('a handler that throws loses no earlier delivery', () => {
  const { delivered, deliveries, add, next, scheduled } = createManual();
  const bad = () => {
    add('a', 1);
    add('b', 2);
    throw new Error('bad');
  };
  assert.throws(() => deliveries.within(bad), { message: 'bad' });
  next();
  assert.deepEqual([delivered, scheduled()], [['a 1', 'b 2'], 0]);
  add('c', 3);
  assert.equal(scheduled(), 1);
});
