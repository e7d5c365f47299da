// Locks and transactions of a real IndexedDB, where there is one.

import { equal, same } from '../check.js';

const needs = ['indexedDB'];

function complete(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.oncomplete = () => resolve();
    request.onerror = () => reject(request.error);
    request.onabort = () => reject(request.error);
  });
}

async function openDatabase(name) {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => request.result.createObjectStore('store');
  return complete(request);
}

/** Begins a transaction with the members of the explainer: `complete` and `waitUntil()`. */
function begin(database, mode) {
  const tx = database.transaction('store', mode);
  tx.complete = complete(tx);
  tx.started = complete(tx.objectStore('store').get(0));
  tx.waitUntil = (promise) => {
    let settled = false;
    const settle = () => {
      settled = true;
    };
    promise.then(settle, settle);
    const again = () => {
      if (!settled) tx.objectStore('store').get(0).onsuccess = again;
    };
    again();
  };
  return tx;
}

/** The rounds of deliveries that a database has to settle a promise. */
const ROUNDS = 5;

/** Returns whether a promise is settled after all earlier deliveries. */
async function isSettled(promise, { quiet }) {
  let settled = false;
  promise.then(() => {
    settled = true;
  });
  // A database is another process, which may be busy.
  for (let round = 0; round < ROUNDS && !settled; round += 1) await quiet();
  return settled;
}

export const databases = [
  {
    id: 'X31',
    title: 'a lock around a transaction: lock.waitUntil(tx.complete)',
    needs,
    async run(t) {
      const { name, available, lineage: { auto } } = t;
      const database = await openDatabase(name());
      const lock = await auto.requestLock(name());
      const tx = begin(database, 'readwrite');
      lock.waitUntil(tx.complete);
      let end;
      tx.waitUntil(new Promise((resolve) => {
        end = resolve;
      }));
      await tx.started;
      await t.quiet();
      equal(await available(name()), false);
      end();
      await tx.complete;
      await lock.released;
      equal(await available(name()), true);
      database.close();
    },
  },
  {
    id: 'X32',
    title: 'a transaction around a lock: tx.waitUntil(lock.released)',
    needs,
    async run(t) {
      const { name, lineage: { explicit } } = t;
      const database = await openDatabase(name());
      const lock = await explicit.requestLock(name());
      const tx = begin(database, 'readwrite');
      tx.waitUntil(lock.released);
      await tx.started;
      equal(await isSettled(tx.complete, t), false);
      lock.release();
      await tx.complete;
      database.close();
    },
  },
  {
    id: 'X34 D26 decision 11',
    title: 'a real database runs only readonly transactions concurrently, like shared locks',
    needs,
    async run(t) {
      const { name, lineage: { explicit } } = t;
      const database = await openDatabase(name());
      const found = { transactions: [], locks: [] };
      for (const first of ['readonly', 'readwrite']) {
        for (const second of ['readonly', 'readwrite']) {
          const one = begin(database, first);
          let end;
          one.waitUntil(new Promise((resolve) => {
            end = resolve;
          }));
          await one.started;
          const other = begin(database, second);
          // A busy browser starts a transaction late, but before the other one ends.
          if (first === 'readonly' && second === 'readonly') await other.started;
          found.transactions.push([first, second, await isSettled(other.started, t)]);
          end();
          await Promise.all([one.complete, other.complete]);

          const modeOf = { readonly: 'shared', readwrite: 'exclusive' };
          const lock = await explicit.requestLock(name(), { mode: modeOf[first] });
          const next = explicit.requestLock(name(), { mode: modeOf[second] });
          found.locks.push([first, second, await isSettled(next, t)]);
          lock.release();
          (await next).release();
        }
      }
      same(found.transactions.map(([, , beside]) => beside), [true, false, false, false]);
      same(found.locks, found.transactions);
      database.close();
    },
  },
];
