// The example with two devices: its page and its scripts are served, and leads to a service that runs.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connect } from 'navlocks';
import WebSocket from 'ws';
import { hear, say, SUBPROTOCOL } from '../wire.js';
import { command } from './service.js';

test('examples/two-devices serves its page and all its scripts, and leads to a service', async (t) => {
  const program = fileURLToPath(new URL('../../examples/two-devices/server.js', import.meta.url));
  const env = { ...process.env, PORT: '0', NAVLOCKS_BIN: command, NAVLOCKS_LOG: 'warn' };
  const server = spawn(process.execPath, [program], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => {
    server.kill();
    return once(server, 'exit');
  });
  const [line] = await once(createInterface(server.stdout), 'line');
  const [origin] = /http:[^ ]+/.exec(line);
  const page = await (await fetch(origin)).text();
  // Every script that a page loads is there, and asks for nothing but others beside it.
  const scripts = [...page.matchAll(/from '(\.\/navlocks\/\w+\.js)'/g)].map(([, path]) => new URL(path, origin).href);
  assert.equal(scripts.length, 1);
  for (const url of scripts) {
    const response = await fetch(url);
    assert.equal(response.status, 200, url);
    for (const [, path] of (await response.text()).matchAll(/from '(.*)'/g)) {
      assert.match(path, /^\.\/\w+\.js$/, `${url} imports ${path}`);
      const { href } = new URL(path, url);
      if (!scripts.includes(href)) scripts.push(href);
    }
  }
  assert.equal((await fetch(`${origin}/navlocks/..%2fpackage.json`)).status, 404);

  const way = `${origin.replace('http:', 'ws:')}/locks`;
  const locks = await connect(way);
  assert.equal(await locks.request('a', () => 'granted'), 'granted');
  await locks.close();

  // Pages of this origin get in, and no others.
  for (const [from, word] of [[origin, 'welcome'], ['http://elsewhere.example', 'error']]) {
    const socket = new WebSocket(way, SUBPROTOCOL, { origin: from });
    socket.once('open', () => socket.send(say.hello('', undefined, undefined)));
    const [text] = await once(socket, 'message');
    assert.equal(hear(text.toString()).word, word);
    socket.terminate();
  }
});
