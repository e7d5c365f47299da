// Partitions in process: each costs something only while it is used.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { locks } from 'navlocks';
import { loadEngine } from '../../native/engine.js';

const { engine } = loadEngine();
const counts = engine.open('', 'counts', new Float64Array(1024), () => {});
const spaces = () => engine.census(counts)[4];

test('idle partitions are freed, and those with a lock, a waiter or a stream stay', async (t) => {
  const held = [];
  t.after(() => held.forEach((lock) => lock.release()));
  for (let number = 0; number < 200; number++) held.push(await locks.partition(`held ${number}`).hold('a'));
  const waiting = locks.partition('held 0').request('a', (lock) => lock.name);
  const stream = locks.partition('stream').events();
  for (let number = 0; number < 2000; number++) {
    assert.equal(await locks.partition(`used once ${number}`).request('a', ({ name }) => name), 'a');
  }
  assert.ok(spaces() < 1000, `${spaces()} lock spaces`);
  for (let number = 0; number < 200; number++) {
    assert.equal(await locks.partition(`held ${number}`).request('a', { ifAvailable: true }, (lock) => lock), null);
  }
  await locks.partition('stream').request('a', () => {});
  assert.equal((await stream.next()).value.type, 'requested');
  await stream.return();
  for (const lock of held) assert.ok(lock.release());
  assert.equal(await waiting, 'a');
  for (let number = 0; number < 2000; number++) await locks.partition(`used later ${number}`).request('a', () => {});
  assert.ok(spaces() < 150, `${spaces()} lock spaces`);
});

test('a partition that was freed works again, and its tokens go on', async () => {
  const again = locks.partition('again');
  const token = () => again.request('a', ({ fencingToken }) => fencingToken);
  const before = await token();
  for (let number = 0; number < 1000; number++) await locks.partition(`between ${number}`).request('a', () => {});
  assert.ok((await token()) > before);
  assert.deepEqual(await again.query(), { held: [], pending: [] });
});

test('an unused partition object is garbage collected, and a used one stays the same', async () => {
  const code = `
    import { locks } from ${JSON.stringify(import.meta.resolve('navlocks'))};
    const kept = locks.partition('kept');
    const references = [];
    for (let number = 0; number < 1000; number++) {
      const partition = locks.partition('unused ' + number);
      await partition.request('a', () => {});
      references.push(new WeakRef(partition), new WeakRef(partition.space));
    }
    for (let turn = 0; turn < 3; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      gc();
    }
    console.log(references.filter((reference) => reference.deref() !== undefined).length, locks.partition('kept') === kept);
  `;
  const given = ['--expose-gc', '--input-type=module', '--eval', code];
  const { stdout } = await promisify(execFile)(process.execPath, given, { timeout: 60_000 });
  const [alive, isSame] = stdout.trim().split(' ');
  // The engine keeps some idle clients.
  assert.ok(Number(alive) < 150, `${alive} of 2000 are alive`);
  assert.equal(isSame, 'true');
});
