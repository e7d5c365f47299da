// Node with foreign globals: the simulated browser of a test runner, and server-side rendering.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { Service } from '../support/service.js';

async function run(text, ...given) {
  const options = { timeout: 60_000, cwd: import.meta.dirname };
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', text, ...given], options);
  return stdout.trim();
}

test('under happy-dom every entry point can be imported, and its signals work', async () => {
  const seen = await run(`
    import { Window } from 'happy-dom';
    const window = new Window({ url: 'http://localhost/' });
    for (const name of ['AbortController', 'AbortSignal', 'DOMException', 'Event', 'EventTarget', 'document', 'location', 'navigator', 'window']) {
      Object.defineProperty(globalThis, name, { value: window[name], writable: true, configurable: true });
    }
    const { install, locks } = await import('navlocks');
    await import('navlocks/browser');
    await import('navlocks/lineage');
    install();
    const { signal } = new AbortController();
    console.log(await navigator.locks.request('a', { signal }, (lock) => lock.name));
    console.log(await locks.request('a', { signal: {} }, () => {}).catch((error) => error.message));
    const controller = new AbortController();
    await locks.request('a', () => {
      const waiting = locks.request('a', { signal: controller.signal }, () => {}).catch((error) => console.log(error.name));
      controller.abort();
      return waiting;
    });
    process.exit();
  `);
  assert.deepEqual(seen.split('\n'), ['a', "'signal' is not an AbortSignal", 'AbortError']);
});

test('without the globals that jsdom lacks every entry point can be imported, and connects', async (t) => {
  const service = await Service.start();
  t.after(() => service.kill());
  const seen = await run(`
    import { WebSocket } from 'ws';
    globalThis.WebSocket = WebSocket;
    for (const name of ['TextEncoder', 'TextDecoder', 'MessageChannel', 'MessagePort', 'BroadcastChannel', 'structuredClone', 'setImmediate', 'fetch']) {
      delete globalThis[name];
    }
    const { connect } = await import('navlocks/browser');
    const node = await import('navlocks');
    await import('navlocks/lineage');
    for (const open of [connect, node.connect]) {
      const locks = await open(process.argv[1]);
      console.log(await locks.request('a', (lock) => lock.name));
      console.log(await locks.request('\\u00e9'.repeat(1_100_000), () => {}).catch((error) => error.message.slice(0, 36)));
      await locks.close();
    }
    console.log(await node.locks.request('b', (lock) => lock.name));
  `, service.tcp);
  const long = `the name '${'é'.repeat(26)}`;
  assert.deepEqual(seen.split('\n').map((line) => line.slice(0, long.length)), ['a', long, 'a', long, 'b']);
});

test('a Node process with the entry point for browsers ends after close()', async (t) => {
  const service = await Service.start();
  t.after(() => service.kill());
  const seen = await run(`
    import { WebSocket } from 'ws';
    globalThis.WebSocket = WebSocket;
    const { connect } = await import('navlocks/browser');
    const locks = await connect(process.argv[1]);
    console.log(await locks.request('a', (lock) => lock.name));
    const held = await locks.hold('b');
    held.signal.addEventListener('abort', () => console.log(held.signal.reason.cause));
    await locks.close();
  `, service.tcp);
  assert.deepEqual(seen.split('\n'), ['a', 'ClientEnded']);
});
