// The async context of a caller is active in the callback of its request, and in listeners for the
// loss.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { test } from 'node:test';
import { connect, locks as own } from 'navlocks';
import { Service } from '../support/service.js';

const service = await Service.start();
const storage = new AsyncLocalStorage();

function signalled() {
  let resolve;
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

for (const [where, locks] of Object.entries({ 'in the process': own, 'through a service': await connect(service.unix) })) {
  test(`AsyncLocalStorage works in callbacks and signal listeners, ${where}`, async () => {
    const seen = {};
    const note = (key) => {
      seen[key] = storage.getStore();
    };
    const [granted, lost] = [signalled(), signalled()];
    const first = await storage.run('holder', () => locks.hold('context'));
    const waits = storage.run('waits', () => locks.request('context', (lock) => {
      note('granted');
      granted.resolve();
      lock.signal.addEventListener('abort', () => {
        note('lost');
        lost.resolve();
      });
      return new Promise(() => {});
    }));
    const caught = waits.catch(() => {});
    await storage.run('missed', () => locks.request('context', { ifAvailable: true }, () => note('missed')));
    storage.run('release', () => first.release());
    await granted.promise;
    await storage.run('thief', () => locks.request('context', { steal: true }, () => note('thief')));
    await Promise.all([lost.promise, caught]);
    assert.deepEqual(seen, { missed: 'missed', granted: 'waits', thief: 'thief', lost: 'waits' });
  });
}

test.after(() => service.kill());
