// The async context of a reentrant lock: requests in its callback are made within it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { connect, locks as own } from 'navlocks';
import { fails } from '../support/outcomes.js';
import { Service } from '../support/service.js';

const service = await Service.start();
const pause = () => new Promise((resolve) => {
  setImmediate(resolve);
});

for (const [where, locks] of Object.entries({ 'in the process': own, 'through a service': await connect(service.unix) })) {
  test(`B06 B07 nested calls of a function join its lock after an await, ${where}`, async () => {
    const tokens = [];
    const update = (depth) => locks.request('table', { reentrant: true }, async (lock) => {
      await pause();
      tokens.push(lock.fencingToken);
      if (depth > 0) await update(depth - 1);
    });
    await Promise.all([update(2), update(1)]);
    assert.equal(tokens.length, 5);
    assert.equal(new Set(tokens).size, 2);
    assert.deepEqual((await locks.query()).held, []);
  });

  test(`B04 B07 a request in the callback of a reentrant lock fails if it waits for that, ${where}`, async () => {
    await locks.request('outer', { reentrant: true }, async () => {
      await pause();
      const { cause } = await fails(locks.request('outer', () => {}), 'AbortError');
      assert.equal(cause.code, 'deadlock');
      // It need not be made within the lock.
      const later = locks.request('outer', { within: null }, () => 'later');
      const after = locks.request('other', () => locks.request('other', { ifAvailable: true }, (lock) => lock));
      assert.equal(await after, null);
      return { later };
    }).then(({ later }) => later);
  });

  test(`B02 two handlers that want one name wait in turn, ${where}`, async () => {
    const order = [];
    const handle = (id) => locks.request('key', { reentrant: true }, async () => {
      order.push(id);
      await pause();
      assert.deepEqual(await locks.deadlocks(), []);
      order.push(id);
    });
    await Promise.all([handle(1), handle(2), handle(3)]);
    assert.deepEqual(order, [1, 1, 2, 2, 3, 3]);
  });

  test(`B08 a callback may request its lock again without waiting for that, ${where}`, async () => {
    const turns = [];
    const ended = new Promise((resolve) => {
      const turn = async () => {
        turns.push(turns.length);
        await pause();
        if (turns.length === 3) resolve();
        else locks.request('ball', { within: null }, turn);
      };
      locks.request('ball', turn);
    });
    await ended;
    assert.deepEqual(turns, [0, 1, 2]);
  });
}

test('B07 every callback knows its lock after an await if the program asks for that', async () => {
  const program = `
    import { locks } from ${JSON.stringify(import.meta.resolve('navlocks'))};
    await locks.request('outer', async () => {
      await undefined;
      await locks.request('outer', () => {}).catch(({ cause }) => console.log(cause.code));
    });
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
    timeout: 60_000,
    env: { ...process.env, NAVLOCKS_TRACK_HOLDERS: '1' },
  });
  assert.equal(stdout, 'deadlock\n');
});

test('B08 locks that are over are garbage, also in an endless chain of requests from callbacks', async () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  let first;
  let last;
  let finish;
  const start = () => {
    // A request keeps its signal.
    const { signal } = new AbortController();
    first = new WeakRef(signal);
    return { signal };
  };
  await new Promise((resolve) => {
    const next = (turn) => {
      if (turn < 5) own.request(`chain ${turn}`, () => next(turn + 1));
      else last = own.request('chain', () => new Promise((end) => resolve(finish = end)));
    };
    own.request('chain', start(), () => next(0));
  });
  await pause();
  gc();
  assert.equal(first.deref(), undefined);
  finish();
  await last;
});

test.after(() => {
  service.kill();
});
