// The connection of a page, tested in Node with a simulated page. chromium.test.js has real pages.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pass } from '../support/clock.js';
import { connect as connectFromNode } from 'navlocks';
import { install, uninstall } from 'navlocks/browser';
import WebSocket from 'ws';
import { Proxy } from '../support/proxy.js';
import { Service } from '../support/service.js';

const ORIGIN = 'http://page.example';
const TOKEN = 'a-token-that-is-long-enough';

const service = await Service.start(['--allow-origin', ORIGIN, '--lease', '60s']);

/** A MessageChannel that does not keep the process alive. */
class Channel {
  port1 = {};
  port2 = { postMessage: () => setImmediate(() => this.port1.onmessage()) };
}

/** The members of a window that the package uses. */
class Page extends EventTarget {
  navigator = {};
  document = Object.assign(new EventTarget(), { defaultView: this, baseURI: `${ORIGIN}/folder/page` });
  origin = ORIGIN;
  dialled = [];
  MessageChannel = Channel;

  constructor(origin = ORIGIN) {
    super();
    this.origin = origin;
    const { Object, Promise, TypeError, URL } = globalThis;
    Object.assign(this, { Object, Promise, TypeError, URL, setTimeout: this.#own(setTimeout), clearTimeout: this.#own(clearTimeout) });
    const { dialled } = this;
    this.WebSocket = class extends WebSocket {
      constructor(url, protocols) {
        // In a browser each message has a task of its own.
        super(url, protocols, { origin, allowSynchronousEvents: false });
        dialled.push(url);
      }
    };
  }

  /** Returns a function that refuses every receiver but its window, as in browsers. */
  #own(work) {
    const page = this;
    return function own(...given) {
      if (this !== undefined && this !== page) throw new TypeError('Illegal invocation');
      return work(...given);
    };
  }

  tell(type, more = {}) {
    this.dispatchEvent(Object.assign(new Event(type), more));
  }

  tellDocument(type) {
    this.document.dispatchEvent(new Event(type));
  }
}

/** Holds a lock until it is lost. `lost` resolves with the error. */
async function hold(locks, name) {
  let settled;
  await new Promise((resolve) => {
    settled = locks.request(name, () => {
      resolve();
      return new Promise(() => {});
    });
  });
  return { lost: settled.catch((error) => error) };
}

test('F12 install() defines navigator.locks at once, and requests wait for the service', async () => {
  const page = new Page();
  const locks = install(page, { url: service.tcp });
  assert.equal(page.navigator.locks, locks);
  assert.equal(Object.getPrototypeOf(locks), page.LockManager.prototype);
  assert.equal(await locks.request('a', async (lock) => (await locks.query()).held.length + lock.name), '1a');
  page.tell('pagehide', { persisted: false });
});

test('install() accepts locks of connect() or options, and refuses other values', async () => {
  const locks = await connectFromNode(service.tcp, { origin: ORIGIN });
  const first = new Page();
  const other = install(first, { url: service.tcp });
  for (const given of [locks, other]) {
    const page = new Page();
    const manager = install(page, given);
    assert.equal(page.navigator.locks, manager);
    assert.equal(Object.getPrototypeOf(manager), page.LockManager.prototype);
    assert.deepEqual(page.dialled, []);
    assert.equal(await manager.request('given', async () => (await locks.query()).held.length), 1);
  }
  const foreign = { request() {}, query() {} };
  for (const wrong of [null, service.tcp, foreign]) assert.throws(() => install(new Page(), wrong), TypeError);
  assert.throws(() => install({}, locks), TypeError);
  first.tell('pagehide', { persisted: false });
  await locks.close();
});

test('F12 the getter of navigator.locks accepts every Navigator of its realm, and no other object', () => {
  class Navigator {
    #agent = 'agent';
    get userAgent() {
      return this.#agent;
    }
  }
  const page = new Page();
  page.navigator = new Navigator();
  const locks = install(page, { url: service.tcp });
  const { get } = Object.getOwnPropertyDescriptor(Navigator.prototype, 'locks');
  assert.equal(page.navigator.locks, locks);
  // A window that was navigated from its initial empty document has a second Navigator.
  assert.equal(get.call(new Navigator()), locks);
  for (const wrong of [{}, Object.create(page.navigator), Navigator.prototype, undefined]) assert.throws(() => get.call(wrong), TypeError);
  page.tell('pagehide', { persisted: false });
});

test('an address is relative to the page, and a bad address throws a SyntaxError', () => {
  const page = new Page();
  install(page, { url: '/locks' });
  assert.deepEqual(page.dialled, ['ws://page.example/locks']);
  page.tell('pagehide', { persisted: true });
  for (const options of [undefined, {}, { url: 'mailto:a' }, { url: 'ws://a#b' }]) {
    assert.throws(() => install(new Page(), options), { name: 'SyntaxError' });
  }
});

test('F122 a page that is closed releases its locks at once', async () => {
  const [page, other] = [new Page(), new Page()];
  const locks = install(page, { url: service.tcp });
  const others = install(other, { url: service.tcp });
  await hold(locks, 'going');
  const next = others.request('going', () => 'granted');
  await others.query();
  page.tell('pagehide', { persisted: false });
  assert.equal(await next, 'granted');
  other.tell('pagehide', { persisted: false });
});

for (const [how, sleep, wake] of [
  ['put into the back/forward cache', (page) => page.tell('pagehide', { persisted: true }), (page) => page.tell('pageshow', { persisted: true })],
  ['frozen', (page) => page.tellDocument('freeze'), (page) => page.tellDocument('resume')],
]) {
  test(`F126 F127 X30 decision 7: a page that is ${how} blocks no other client, and keeps its requests`, async () => {
    const [page, other] = [new Page(), new Page()];
    const locks = install(page, { url: service.tcp });
    const others = install(other, { url: service.tcp });
    const held = await hold(locks, 'asleep');
    const theirs = await hold(others, 'theirs');
    const order = [];
    const waits = locks.request('theirs', () => order.push('the sleeper'));
    await locks.query();
    sleep(page);
    assert.ok(await others.request('asleep', { ifAvailable: true }, (lock) => lock !== null));
    await others.request('theirs', { steal: true }, () => {});
    await theirs.lost;
    await others.request('theirs', () => order.push('the other'));
    wake(page);
    const { name, cause } = await held.lost;
    assert.deepEqual([name, cause], ['AbortError', 'Suspended']);
    await waits;
    assert.deepEqual(order, ['the other', 'the sleeper']);
    for (const one of [page, other]) one.tell('pagehide', { persisted: false });
  });
}

test('a page has no listeners of a session that was closed or refused', async () => {
  for (const [origin, end] of [[ORIGIN, (page) => uninstall(page)], ['http://elsewhere.example', () => {}]]) {
    const page = new Page(origin);
    const listeners = new Set();
    for (const target of [page, page.document]) {
      const { addEventListener, removeEventListener } = EventTarget.prototype;
      target.addEventListener = (type, listener) => {
        listeners.add(listener);
        addEventListener.call(target, type, listener);
      };
      target.removeEventListener = (type, listener) => {
        listeners.delete(listener);
        removeEventListener.call(target, type, listener);
      };
    }
    const locks = install(page, { url: service.tcp });
    assert.ok(listeners.size > 0);
    await locks.query().catch(() => {});
    await end(page);
    assert.equal(listeners.size, 0);
  }
});

test('a page that is offline does not dial, and connects when it is online', async () => {
  const page = new Page();
  page.navigator.onLine = false;
  const locks = install(page, { url: service.tcp });
  const query = locks.query();
  await new Promise(setImmediate);
  page.tell('online');
  await new Promise(setImmediate);
  assert.deepEqual(page.dialled, []);
  page.navigator.onLine = true;
  page.tell('online');
  assert.deepEqual((await query).held, []);
  assert.equal(page.dialled.length, 1);
  await uninstall(page);
});

test('a page dials a service that is down at most five times in ten seconds', async () => {
  const page = new Page();
  const timers = new Set();
  let now = 0;
  page.setTimeout = (work, milliseconds) => {
    const timer = { at: now + milliseconds, work };
    timers.add(timer);
    return timer;
  };
  page.clearTimeout = (timer) => timers.delete(timer);
  page.WebSocket = class {
    constructor() {
      page.dialled.push(now);
      setImmediate(() => this.onclose?.({ reason: '' }));
    }

    close() {}
  };
  install(page, { url: 'ws://127.0.0.1:1', unreachableAfter: Infinity });
  while (now < 10_000) {
    // Each attempt fails before the next timer runs.
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
    const [next] = [...timers].sort((one, other) => one.at - other.at);
    timers.delete(next);
    pass(next.at - now);
    now = next.at;
    next.work();
  }
  assert.deepEqual(page.dialled.filter((at) => at < 10_000), [0, 500, 1500, 3500, 7500]);
  await uninstall(page);
});

test('F128 a prerendering page does not connect, and its calls wait for the activation, in order', async () => {
  const page = new Page();
  page.document.prerendering = true;
  const locks = install(page, { url: service.tcp });
  const order = [];
  const calls = [
    locks.request('seen', () => order.push('first')),
    locks.request('-', () => {}).catch(({ name }) => order.push(name)),
    locks.query().then(({ held }) => order.push(`${held.length} held`)),
  ];
  page.document.addEventListener('prerenderingchange', (event) => {
    order.push('seen');
    calls.push(locks.request('seen', () => order.push('second')));
    // Hides the event from all other listeners.
    event.stopImmediatePropagation();
  });
  await new Promise(setImmediate);
  assert.deepEqual([page.dialled, order], [[], []]);
  page.document.prerendering = false;
  page.tell('prerenderingchange');
  page.tellDocument('prerenderingchange');
  await Promise.all(calls);
  page.tell('pagehide', { persisted: false });
  assert.deepEqual(order, ['seen', 'NotSupportedError', 'second', '1 held', 'first']);
});

test('F09 P02 an opaque origin has no locks, and does not connect', async () => {
  const page = new Page('null');
  const locks = install(page, { url: service.tcp });
  await assert.rejects(locks.request('a', () => {}), { name: 'SecurityError' });
  await assert.rejects(locks.query(), { name: 'SecurityError' });
  assert.deepEqual(page.dialled, []);
});

test('an origin that the service does not allow gets a SecurityError with the option to set', async () => {
  const locks = install(new Page('http://elsewhere.example'), { url: service.tcp });
  await assert.rejects(locks.request('a', () => {}), { name: 'SecurityError', message: /--allow-origin http:\/\/elsewhere\.example/ });
  await assert.rejects(locks.query(), { name: 'SecurityError' });
});

test('F11 F31 a document that is not fully active gets an InvalidStateError before all other checks', async () => {
  const page = new Page();
  const locks = install(page, { url: service.tcp });
  await locks.query();
  page.document.defaultView = null;
  await assert.rejects(locks.request('-', () => {}), { name: 'InvalidStateError' });
  await assert.rejects(locks.query(), { name: 'InvalidStateError' });
  page.tell('pagehide', { persisted: false });
});

test('F08 F133 a page sends its token as a subprotocol, and has the locks of its origin alone', async () => {
  const guarded = await Service.start(['--allow-origin', ORIGIN], { NAVLOCKS_TOKEN: TOKEN });
  const page = new Page();
  const locks = install(page, { url: guarded.tcp, token: TOKEN });
  await hold(locks, 'a');
  const program = await connectFromNode(guarded.tcp, { token: TOKEN });
  assert.deepEqual((await program.query()).held, []);
  await assert.rejects(install(new Page(), { url: guarded.tcp, token: 'another-token-that-is-long' }).query(), { name: 'SecurityError' });
  await program.close();
  page.tell('pagehide', { persisted: false });
  await guarded.kill();
});

test('D10 an abort takes effect even if another listener stops the event', async () => {
  const page = new Page();
  const locks = install(page, { url: service.tcp });
  await hold(locks, 'stopped');
  const controller = new AbortController();
  controller.signal.addEventListener('abort', (event) => event.stopImmediatePropagation());
  const waits = locks.request('stopped', { signal: controller.signal }, () => {});
  controller.abort('reason');
  await assert.rejects(waits, (reason) => reason === 'reason');
  page.tell('pagehide', { persisted: false });
});

test.after(() => service.kill());

test('a page that closes a silent connection keeps its lock when the network comes back', async () => {
  const proxy = await Proxy.start(service.tcp);
  const page = new Page();
  // A browser's WebSocket cannot be ended without a close frame.
  page.WebSocket.prototype.terminate = undefined;
  const locks = install(page, { url: proxy.url, lease: 4000 });
  const other = await connectFromNode(service.tcp, { origin: ORIGIN });
  const held = await hold(locks, 'silent');
  let granted = false;
  const waits = other.request('silent', () => {
    granted = true;
  });
  await other.query();
  proxy.hold();
  // After half of the lease the page closes its connection and dials again.
  while (page.dialled.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  proxy.pass();
  // The answer proves that the service has the close frame, and knows the session.
  await locks.query();
  await other.query();
  assert.equal(granted, false);
  assert.equal(await Promise.race([held.lost, 'held']), 'held');
  page.tell('pagehide', { persisted: false });
  await waits;
  await other.close();
});
