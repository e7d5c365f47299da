// Deliveries: who is told something in which turn.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Deliveries } from '../delivery.js';

/** Deliveries whose turns come when `next` is called, and all that was told so far. */
function played() {
  const wanted = [];
  const told = [];
  const deliveries = new Deliveries((turn) => () => wanted.push(turn));
  const tell = (entry, value) => told.push(`${entry} ${value}`);
  return {
    told,
    deliveries,
    add: (entry, value) => deliveries.add(tell, entry, value),
    next: () => wanted.shift()?.(),
    wanted: () => wanted.length,
  };
}

test('everybody is told in a turn of its own, in order', () => {
  const { told, add, next, wanted } = played();
  add('a', 1);
  add('b', 2);
  assert.deepEqual([told, wanted()], [[], 1]);
  next();
  assert.deepEqual([told, wanted()], [['a 1'], 1]);
  next();
  assert.deepEqual([told, wanted()], [['a 1', 'b 2'], 0]);
});

test('of those whom a message tells, the first hears it in its turn, after all of it, and the others in theirs', () => {
  const { told, deliveries, add, next, wanted } = played();
  const hear = (message) => {
    for (const entry of message) add(entry, 'granted');
    assert.deepEqual(told, []);
  };
  deliveries.within(hear, ['a', 'b']);
  assert.deepEqual([told, wanted()], [['a granted'], 1]);
  next();
  assert.deepEqual([told, wanted()], [['a granted', 'b granted'], 0]);
});

test('a message overtakes nobody who is yet to be told', () => {
  const { told, deliveries, add, next } = played();
  add('earlier', 1);
  deliveries.within(() => add('later', 2));
  assert.deepEqual(told, []);
  next();
  next();
  assert.deepEqual(told, ['earlier 1', 'later 2']);
});

test('a message that is bad loses nothing that was told before it', () => {
  const { told, deliveries, add, next, wanted } = played();
  const bad = () => {
    add('a', 1);
    add('b', 2);
    throw new Error('bad');
  };
  assert.throws(() => deliveries.within(bad), { message: 'bad' });
  next();
  assert.deepEqual([told, wanted()], [['a 1', 'b 2'], 0]);
  add('c', 3);
  assert.equal(wanted(), 1);
});
