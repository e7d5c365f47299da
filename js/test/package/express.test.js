// The web server of the examples, over HTTP, with the locks of this process and of a service.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';

import { connect, locks as own } from 'navlocks';
import { bankServer, shutDown } from '../../examples/express.js';
import { becomes } from '../support/outcomes.js';
import { Service } from '../support/service.js';

/** Balances whose reads wait while the gate is closed. */
class Bank {
  balances = new Map();
  gate = Promise.resolve();

  /** Closes the gate. Returns a function that opens it, and a promise of the next read. */
  close() {
    let open, begun;
    this.gate = new Promise((resolve) => (open = resolve));
    const reading = new Promise((resolve) => (begun = resolve));
    this.begun = begun;
    return { open, reading };
  }

  async read(account) {
    this.begun?.();
    await this.gate;
    return this.balances.get(account) ?? 0;
  }

  write(account, sum) {
    this.balances.set(account, sum);
  }
}

async function started(locks, bank, wait = 60_000) {
  const server = bankServer(locks, bank, { wait }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const post = async (account, body) => {
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/accounts/${account}`, { method: 'POST', body });
    return [answer.status, await answer.text()];
  };
  return { server, post };
}

test('the web server answers by the kind of failure', async () => {
  const bank = new Bank();
  const { server, post } = await started(own, bank);
  const hasty = await started(own, bank, 20);
  assert.deepEqual(await post('rent', '100'), [200, '100\n']);
  assert.deepEqual(await post('rent', '-30'), [200, '70\n']);
  assert.equal((await post('rent', 'much'))[0], 400);

  const held = await own.hold('account/rent');
  assert.deepEqual(await hasty.post('rent', '1'), [409, "the lock 'account/rent' was not free within 20 ms\n"]);
  assert.equal((await post('wages', '1'))[0], 200);
  held.release();

  const lost = bank.close();
  const answer = post('rent', '5');
  await lost.reading;
  assert.equal(await own.forceRelease('account/rent'), 1);
  assert.equal((await answer)[0], 503);
  lost.open();
  assert.deepEqual(await post('rent', '0'), [200, '70\n']);

  const last = bank.close();
  const late = post('rent', '7');
  await last.reading;
  const ended = Promise.all([shutDown(server, own), shutDown(hasty.server, own)]);
  last.open();
  assert.deepEqual(await late, [200, '77\n']);
  await ended;
});

test('the web server answers 503 while the lock service is down', async () => {
  const service = await Service.start();
  const locks = await connect(service.unix);
  const bank = new Bank();
  const { server, post } = await started(locks, bank);
  const hasty = await started(locks, bank, 20);
  assert.deepEqual(await post('rent', '1'), [200, '1\n']);
  await service.kill();
  await becomes(locks, 'unreachable');
  const [status, text] = await hasty.post('rent', '1');
  assert.equal(status, 503, text);
  assert.match(text, /not granted within 20 ms, with its service out of reach/);
  server.close();
  await shutDown(hasty.server, locks);
});
