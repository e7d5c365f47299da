// The example with two devices: its server delivers page and scripts, and forwards to a service.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connect } from 'navlocks';
import WebSocket from 'ws';
import { Browsers, soakedKinds } from '../browser/browsers.js';
import { read, write, SUBPROTOCOLS } from '../../service/wire.js';
import { command } from '../support/service.js';

/** Starts the example. Resolves with the addresses that it prints. */
async function start(t, ...given) {
  const program = fileURLToPath(new URL('../../../examples/two-devices/server.js', import.meta.url));
  const env = { ...process.env, PORT: '0', NAVLOCKS_BIN: command, NAVLOCKS_LOG: 'warn' };
  const server = spawn(process.execPath, [program, ...given], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => {
    server.kill();
    return once(server, 'exit');
  });
  const [line] = await once(createInterface(server.stdout), 'line');
  return line.match(/http:[^ ]+/g);
}

test('examples/two-devices serves its page and all its scripts, and forwards to a service', async (t) => {
  const [origin] = await start(t);
  const page = await (await fetch(origin)).text();
  // Every script of the page exists, and imports only scripts of the package.
  const scripts = [...page.matchAll(/from '(\.\/navlocks\/\w+\.js)'/g)].map(([, path]) => new URL(path, origin).href);
  assert.equal(scripts.length, 1);
  for (const url of scripts) {
    const response = await fetch(url);
    assert.equal(response.status, 200, url);
    for (const [, path] of (await response.text()).matchAll(/from '(.*)'/g)) {
      const { href } = new URL(path, url);
      assert.ok(href.startsWith(`${origin}/navlocks/`), `${url} imports ${path}`);
      if (!scripts.includes(href)) scripts.push(href);
    }
  }
  assert.equal((await fetch(`${origin}/navlocks/..%2fpackage.json`)).status, 404);

  const address = `${origin.replace('http:', 'ws:')}/locks`;
  const locks = await connect(address);
  assert.equal(await locks.request('a', () => 'granted'), 'granted');
  await locks.close();

  // The service accepts pages of this origin only.
  for (const [from, word] of [[origin, 'welcome'], ['http://elsewhere.example', 'error']]) {
    const socket = new WebSocket(address, SUBPROTOCOLS, { origin: from });
    socket.once('open', () => socket.send(write.hello('', undefined, undefined)));
    const [text] = await once(socket, 'message');
    assert.equal(read(text.toString()).word, word);
    socket.terminate();
  }
});

for (const kind of soakedKinds) test(`examples/two-devices has one lock for pages of all its addresses, in ${kind.name}`, { skip: kind.missing }, async (t) => {
  const printed = await start(t, '--lan');
  const addresses = [...new Set([...printed, printed[0].replace('localhost', '127.0.0.1')])];
  const browsers = new Browsers(kind);
  t.after(() => browsers.close());
  const browser = await browsers.open();
  const pages = [];
  for (const address of addresses) {
    const page = await browser.newPage();
    await page.goto(address);
    // The buttons work once the page shows the lock.
    await page.waitForFunction(() => document.querySelector('.state').dataset.mode !== 'unknown');
    await page.click('#exclusive');
    // The first page holds the lock, the others wait.
    await page.waitForFunction(([held, pending]) => {
      const rows = (id) => document.querySelectorAll(`#${id} .name`).length;
      return rows('held') === held && rows('pending') === pending;
    }, [1, pages.length]);
    pages.push(page);
  }
  assert.ok(pages.length > 1);
});
