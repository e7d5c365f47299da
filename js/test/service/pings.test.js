// WebSocket pings, which a proxy may send at any time.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { WebSocketServer } from 'ws';
import { dial } from '../../service/io/dial.js';
import { scratch } from '../support/service.js';

const PINGS = 100_000;

test('pings of a peer that never reads fill no buffer, and it gets the latest pong when it reads', async () => {
  const server = createServer();
  const sockets = new WebSocketServer({ server });
  const path = join(scratch(), 'socket');
  server.listen(path);
  await once(server, 'listening');
  const socket = dial({ path }, {});
  const [peer] = await once(sockets, 'connection');
  peer.pause();
  const all = new Promise((resolve) => {
    let count = 0;
    socket.on('ping', () => ++count === PINGS && resolve());
  });
  for (let number = 1; number <= PINGS; number += 1) peer.ping(`${number}`.padStart(125));
  await all;
  assert.ok(socket.bufferedAmount < 1000, `${socket.bufferedAmount} bytes of pongs are in the buffer`);
  const last = new Promise((resolve) => {
    peer.on('pong', (payload) => Number(payload) === PINGS && resolve());
  });
  peer.resume();
  await last;
  socket.terminate();
  server.close();
});
