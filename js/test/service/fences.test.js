// The fences of the examples: a writer that was stopped, robbed, and wakes late is refused.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

import { store } from '../../examples/fences.js';
import { Service } from '../support/service.js';

const PROGRAM = fileURLToPath(new URL('fenced-writer.js', import.meta.url));

class Writer {
  #child;
  #lines;

  constructor(url, resource, text) {
    this.#child = spawn(process.execPath, [PROGRAM, url, resource, text], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async line() {
    return Number((await this.#lines.next()).value);
  }

  signal(name) {
    this.#child.kill(name);
  }

  /** Lets it write. Returns the status of the answer. */
  write() {
    this.#child.stdin.write('\n');
    return this.line();
  }
}

test('a writer that was stopped, robbed and wakes late is refused by 412', async () => {
  const service = await Service.start();
  const server = store().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const resource = `http://127.0.0.1:${server.address().port}/report`;
  const late = new Writer(service.unix, resource, 'late');
  const old = await late.line();
  late.signal('SIGSTOP');
  const thief = new Writer(service.unix, resource, 'thief');
  assert.ok((await thief.line()) > old);
  assert.equal(await thief.write(), 204);
  late.signal('SIGCONT');
  assert.equal(await late.write(), 412);
  assert.equal(await (await fetch(resource)).text(), 'thief');
  server.close();
});

test('a write without a token is refused by 428, and each path has its own fence', async () => {
  const server = store().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const put = async (path, token) => {
    const headers = token === undefined ? {} : { 'Fencing-Token': token };
    return (await fetch(`http://127.0.0.1:${server.address().port}${path}`, { method: 'PUT', headers, body: 'x' })).status;
  };
  for (const none of [undefined, '', '0', '-1', '1.5', 'NaN', '9007199254740992']) assert.equal(await put('/a', none), 428, none);
  assert.equal(await put('/a', '7'), 204);
  assert.equal(await put('/a', '7'), 204);
  assert.equal(await put('/a', '6'), 412);
  assert.equal(await put('/b', '6'), 204);
  server.close();
});
