// The fence of an object store, by conditional puts to a local server: moto, which is S3 for tests.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { connect } from 'navlocks';
import { putFenced } from '../../examples/object-store.js';
import { Service } from '../support/service.js';

const program = process.env.NAVLOCKS_MOTO ?? 'moto_server';
const missing = spawnSync(program, ['--help']).status !== 0;
const skip = missing && "there is no moto_server: pip install 'moto[server]', or name it by NAVLOCKS_MOTO";

// The server looks at the key alone.
const headers = {
  'Content-Type': 'text/plain',
  Authorization: 'AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0',
};

let server;
let bucket;

async function freePort() {
  const socket = createServer().listen(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  await once(socket, 'close');
  return port;
}

before(async () => {
  if (skip) return;
  const port = await freePort();
  server = spawn(program, ['-H', '127.0.0.1', '-p', String(port)], { stdio: ['ignore', 'ignore', 'pipe'] });
  server.stderr.setEncoding('utf8');
  let log = '';
  for await (const text of server.stderr.iterator({ destroyOnReturn: false })) {
    log += text;
    if (log.includes('Running on')) break;
  }
  server.stderr.resume();
  bucket = `http://127.0.0.1:${port}/bucket`;
  assert.equal((await fetch(bucket, { method: 'PUT', headers })).status, 200);
});

after(() => {
  server?.kill();
});

const read = async (url) => (await fetch(url, { headers })).text();

test('an object of a store refuses a writer that was robbed and is late', { skip }, async () => {
  const service = await Service.start();
  const [locks, others] = [await connect(service.unix), await connect(service.unix)];
  const url = `${bucket}/report`;
  const late = await locks.hold('report');
  const thief = await others.hold('report', { steal: true });
  assert.equal(await putFenced(url, 'thief', thief.fencingToken, { headers }), true);
  assert.equal(await putFenced(url, 'late', late.fencingToken, { headers }), false);
  assert.equal(await read(url), `${thief.fencingToken}\nthief`);
  // The holder itself may write again.
  assert.equal(await putFenced(url, 'again', thief.fencingToken, { headers }), true);
  thief.release();
  await Promise.all([locks.close(), others.close()]);
  await service.kill();
});

for (const [title, first] of [['a first write', undefined], ['a write of the same text', 'same']]) {
  test(`an object of a store refuses a writer that stops before its put, after ${title} by a later one`, { skip }, async () => {
    const url = `${bucket}/${encodeURIComponent(title)}`;
    if (first !== undefined) await putFenced(url, first, 6, { headers });
    let stopped = false;
    const stopping = async (given, options) => {
      if (options.method === 'PUT' && !stopped) {
        stopped = true;
        assert.equal(await putFenced(url, 'same', 8, { headers }), true);
      }
      return fetch(given, options);
    };
    assert.equal(await putFenced(url, 'same', 7, { headers, fetch: stopping }), false);
    assert.equal(await read(url), '8\nsame');
  });
}
