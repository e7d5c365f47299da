// The cost of steals, counted in reads of requests, which no machine changes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NamedEntries } from '../../native/entries.js';
import { Limits } from '../../service/limits.js';
import { Requests } from '../../service/requests.js';

/** Returns steals of so many names whose reads of their names are counted. */
function counted(count, names = count) {
  const counter = { reads: 0 };
  const entries = Array.from({ length: count }, (_, number) => ({
    get scope() {
      counter.reads++;
      return `${number % names}`;
    },
    mode: 'exclusive',
    wait: 2,
    steal: true,
    answered: true,
    granted() {},
  }));
  return { counter, entries };
}

/** Asserts that four times as many steals cost about four times as many reads. */
function assertLinear(play) {
  const [few, many] = [1_000, 4_000].map((count) => {
    const { counter, entries } = counted(count);
    play(entries);
    return counter.reads;
  });
  assert.ok(few > 0 && many < 5 * few, `${few} and ${many} reads`);
}

test('steals of many free names through a service read each a few times', () => {
  assertLinear((entries) => {
    const output = { deliver: (work, entry, value) => work(entry, value), wait() {}, check() {} };
    const requests = new Requests(new Limits(), output);
    for (const entry of entries) requests.add(0, entry, true, 0);
    for (const { id } of entries) requests.granted({ id, token: id }, false, 0);
    assert.ok(entries.every((entry) => requests.release(entry)));
    assert.equal(requests.size, 0);
  });
});

test('grants that cross later steals of their client read each name a few times', () => {
  const reads = [1_000, 4_000].map((count) => {
    const { counter, entries } = counted(2 * count, count);
    const told = [];
    const output = { deliver: (work, entry, value) => told.push([entry, work, value]), wait() {}, check() {} };
    const requests = new Requests(new Limits(), output);
    entries.slice(0, count).forEach((entry) => (entry.steal = false));
    for (const entry of entries) requests.add(0, entry, true, 0);
    for (const { id } of entries.slice(0, count)) requests.granted({ id, token: id }, false, 0);
    assert.equal(told.length, 0);
    for (const { id } of entries.slice(count)) requests.refused(id, { fault: { code: 'limit', message: '' } });
    assert.equal(told.length, 2 * count);
    return counter.reads;
  });
  assert.ok(reads[0] > 0 && reads[1] < 5 * reads[0], `${reads} reads`);
});

test('steals of many free names in a worker read each a few times', () => {
  assertLinear((entries) => {
    const known = new NamedEntries();
    entries.forEach((entry, number) => {
      known.forEachBeside(entry, () => assert.fail('the name is free'));
      known.set(number, entry);
    });
    assert.ok(entries.every((_, number) => known.delete(number)));
    known.forEachBeside(entries[0], () => assert.fail('the name is free again'));
  });
});

test('a steal in a worker finds each of its own locks by name', () => {
  const [one, both, other] = ['a', ['a', 'b'], 'c'].map((scope) => ({ scope }));
  const known = new NamedEntries();
  [one, both, other].forEach((entry, index) => known.set(index + 1, entry));
  const found = () => {
    const names = [];
    known.forEachBeside({ scope: ['b', 'a'] }, (entry) => names.push(entry));
    return names;
  };
  assert.deepEqual(new Set(found()), new Set([one, both]));
  assert.ok(known.delete(2));
  assert.equal(known.delete(2), false);
  assert.deepEqual(found(), [one]);
});
