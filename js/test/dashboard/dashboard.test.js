// The dashboard in real browsers: every view with real clients, access control, and the actions
// of operators.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import WebSocket from 'ws';
import { soakedKinds, unlessFirefox } from '../browser/browsers.js';
import { startSite } from '../browser/site.js';
import { Dashboard, Holder } from './page.js';
import { Pages, shows } from './pages.js';
import { WireClient } from './wire-client.js';
import { scratch, Service } from '../support/service.js';

const TENANT_A = 'token-of-tenant-a-0001';
const TENANT_B = 'token-of-tenant-b-0001';
const OPERATOR = 'token-of-an-operator-1';

/** Writes a file of tokens that other users cannot read. */
function tokens(text) {
  const path = join(scratch(), 'tokens');
  writeFileSync(path, text);
  chmodSync(path, 0o600);
  return path;
}

for (const kind of soakedKinds) describe(`the dashboard in ${kind.name}`, { skip: kind.missing }, () => {
  const pages = new Pages(kind);
  let service;
  let dashboard;

  before(async () => {
    service = await Service.start(['--lease-max', '10m', '--dashboard']);
    dashboard = await Dashboard.start(service.unix, ['--actions']);
  });

  after(async () => {
    await pages.end();
    await dashboard.close();
    await service.kill();
  });

  const http = () => service.tcp.replace('ws:', 'http:');

  const open = (address) => pages.open(address);
  const close = (page) => pages.close(page);

  test('every view follows real clients', async () => {
    const page = await open(`${http()}/`);
    const holder = await Holder.start(service.unix);
    await holder.hold(1, ['ledger', 'till'], { tag: 'night run' });
    const waiter = await WireClient.connect(service.tcp, { lease: 60_000 });
    const { granted } = waiter.request('till', { tag: 'checkout' });
    await shows(page, 'ledger', 'till', 'night run', `pid ${holder.pid}`, 'lock held', 'request waits');
    await page.getByRole('link', { name: 'till' }).first().click();
    await shows(page, '1 holder, 1 waiter', 'checkout', 'tied to 1 other name');
    await page.getByRole('link', { name: 'Blocking' }).click();
    await shows(page, 'Blocked requests', '1 behind', 'night run', 'checkout');
    await page.getByRole('link', { name: 'Clients' }).click();
    await shows(page, 'Unix socket', 'TCP', 'ends with its connection');
    waiter.cut();
    await shows(page, 'lost');
    await page.getByRole('link', { name: 'Time' }).click();
    await shows(page, 'Waiting and held', 'Locks and waiters', 'night run', 'The last minute, by client');
    await page.getByRole('link', { name: 'Events' }).click();
    holder.send({ end: 1 });
    await shows(page, 'requested', 'granted', 'released');
    await page.getByRole('link', { name: 'Deadlocks' }).click();
    await shows(page, 'No deadlock');
    void granted;
    await holder.close();
    await close(page);
  });

  test('the service filters, sorts and pages names', async () => {
    const client = await WireClient.connect(service.unix, { partition: 'many' });
    for (let number = 0; number < 120; number += 1) await client.hold(`row/${String(number).padStart(3, '0')}`, { tag: number % 2 === 0 ? 'even' : 'odd' });
    const page = await open(`${http()}/#/names?partition=many&order=name`);
    const text = await shows(page, '120 names', 'Page 1 of 3', 'row/000');
    assert.ok(!text.includes('row/050'), 'a page has 50 rows');
    await page.getByRole('button', { name: 'Next' }).click();
    await shows(page, 'row/050', 'Page 2 of 3');
    await page.getByLabel('Search names').fill('ROW/11');
    await shows(page, '10 names of 120', 'row/110');
    await page.getByLabel('Tag').fill('odd');
    await shows(page, '5 names of 120');
    assert.match(page.url(), /name=ROW\/11/, 'the view has a link');
    await page.reload();
    await shows(page, '5 names of 120');
    client.close();
    await close(page);
  });

  test('names are shown as text, and invisible characters are escaped', async () => {
    const names = {
      '<img src=x onerror=alert(1)>': '<img src=x onerror=alert(1)>',
      'lone \ud800 half': 'lone \\u{d800} half',
      'turn \u202egnp.exe': 'turn \\u{202e}gnp.exe',
      'nul\0byte': 'nul\\u{0}byte',
      'p\u0430ypal': 'p\\u{430}ypal',
      'zero\u200bwidth': 'zero\\u{200b}width',
      '\uff41dmin': '\\u{ff41}dmin',
      'Grüße, мир': 'Grüße, мир',
      '': '(empty name)',
    };
    const client = await WireClient.connect(service.unix, { partition: 'odd' });
    for (const name of Object.keys(names)) await client.hold(name, { tag: '<b>bold</b>' });
    const long = `${'x'.repeat(65_535)}y`;
    await client.hold(long);
    const page = await open(`${http()}/#/names?partition=odd`);
    await shows(page, ...Object.values(names), '65536 characters', '<b>bold</b>');
    assert.equal(await page.locator('main b:text("bold")').count(), 0);
    assert.equal(await page.locator('main img').count(), 0);
    await page.getByText('65536 characters').click();
    const text = await shows(page, '1 holder');
    assert.ok(text.includes(long), 'the whole name');
    for (const name of ['lone \ud800 half', '<img src=x onerror=alert(1)>']) {
      await page.goto(`${http()}/#/names?partition=odd`);
      await page.getByRole('link', { name: names[name] }).click();
      await shows(page, names[name], '1 holder, 0 waiters');
    }
    client.close();
    await close(page);
  });

  test('a deadlock of two processes is shown as a cycle, and the page can break it', async () => {
    const [one, two] = await Promise.all([Holder.start(service.unix), Holder.start(service.unix)]);
    await one.hold(1, 'fork', { tag: 'plato' });
    await two.hold(1, 'knife', { tag: 'hume' });
    one.request(2, 'knife', { tag: 'plato', within: 1 });
    two.request(2, 'fork', { tag: 'hume', within: 1 });
    const page = await open(dashboard.url);
    await page.waitForSelector('.count');
    await page.getByRole('link', { name: /Deadlocks/ }).click();
    await shows(page, '1 deadlock', 'To break it, release', 'navlocks release --force');
    const label = await page.locator('.ring svg').getAttribute('aria-label');
    assert.match(label, /Ring of 2: .*(plato waits for knife|hume waits for fork)/);
    await page.getByRole('button', { name: 'Break it…' }).click();
    const dialog = page.getByRole('dialog');
    const wanted = await dialog.locator('label .name').innerText();
    const confirm = dialog.getByRole('button', { name: 'Break the deadlock' });
    await dialog.getByRole('textbox').fill('something else');
    assert.equal(await confirm.isDisabled(), true);
    await dialog.getByRole('textbox').fill(wanted);
    await confirm.click();
    const [loser, winner] = wanted === 'fork' ? [one, two] : [two, one];
    assert.equal((await loser.receive((message) => message.over?.id === 1)).over.why.lost.cause, 'force-released');
    await winner.receive((message) => message.granted?.id === 2);
    await shows(page, 'No deadlock', 'Earlier', 'over');
    await page.getByRole('link', { name: 'Events' }).click();
    await shows(page, 'operator released', 'local pid');
    await one.close();
    await two.close();
    await close(page);
  });

  test('a release by the id of an ended lock has no effect', async () => {
    const client = await WireClient.connect(service.unix, { partition: 'late' });
    const id = await client.hold('gone');
    const view = await viewer({ path: '/dashboard/act', unix: service.unix });
    const act = (action, preview) => view({ act: { action, preview } });
    const request = `${client.session}.${id}`;
    assert.equal((await act({ release: request }, true)).shown.acted.count, 1);
    client.release(id);
    // Two connections have no order: a later grant shows that the service took the release.
    await client.hold('after the release');
    assert.match((await act({ release: request })).refused.message, /holds no lock any more/);
    const again = await client.hold('gone', { tag: 'another holder of the same name' });
    assert.match((await act({ release: request })).refused.message, /holds no lock any more/);
    const ended = client.lost(again);
    assert.equal((await act({ steal: `${client.session}.${again}` })).shown.acted.done, true);
    assert.ok('stolen' in (await ended).cause);
    client.close();
  });

  test('a page without the right to act has no buttons, and its actions are refused', async () => {
    const client = await WireClient.connect(service.unix);
    const id = await client.hold('not yours');
    const page = await open(`${http()}/#/name?name=not~0020yours`);
    await shows(page, '1 holder');
    assert.equal(await page.getByRole('button', { name: 'Release…' }).count(), 0);
    const view = await viewer({ tcp: service.tcp });
    const action = { release: `${client.session}.${id}` };
    assert.match((await view({ act: { action } })).refused.message, /may look and not act/);
    client.close();
    await close(page);
  });

  test('the address of the command works once, and the page removes the token from it', async () => {
    const own = await Dashboard.start(service.unix);
    assert.equal((await get(own.origin, {}, 'HEAD')).status, 200);
    const authorization = `Bearer ${own.url.split('=')[1]}`;
    assert.equal((await get(`${own.origin}/dashboard/key`, { authorization }, 'HEAD')).status, 405);
    const first = await open(own.url);
    await shows(first, 'in use');
    assert.ok(!first.url().includes('token'));
    await first.reload();
    await shows(first, 'in use');
    const second = await open(own.url);
    await shows(second, 'the address was opened before');
    // The browser itself reports the refused request.
    assert.deepEqual(second.problems.filter((problem) => !problem.includes('401')), []);
    await second.context().close();
    const third = await open(`${own.origin}/`);
    await third.waitForSelector('.live.down');
    await third.context().close();
    await close(first);
    await own.close();
    await assert.rejects(fetch(own.origin), 'the port is closed with the command');
  });

  test('the page shows that its service is down, and reconnects after a restart', async () => {
    const own = await Service.start(['--dashboard', '--lease', '1s', '--lease-max', '1s']);
    const page = await open(`${own.tcp.replace('ws:', 'http:')}/`);
    await shows(page, 'Nothing is held');
    await own.kill('SIGTERM');
    await page.waitForSelector('.banner.bad');
    assert.match(await page.locator('.banner').innerText(), /out of reach/);
    await own.start();
    await page.waitForSelector('.live:not(.down)');
    const client = await WireClient.connect(own.unix);
    await client.hold('after the restart');
    await shows(page, 'after the restart');
    client.close();
    await page.context().close();
    await own.kill();
  });

  describe('where the service has tokens', () => {
    let guarded;
    let one;
    let two;

    before(async () => {
      const given = ['--dashboard', '--dashboard-actions', '--lease-max', '10m'];
      const files = ['--token-file', tokens(`a:${TENANT_A}\nb:${TENANT_B}\n`), '--operator-token-file', tokens(`olivia:${OPERATOR}\n`)];
      guarded = await Service.start([...given, ...files]);
      one = await WireClient.connect(guarded.tcp, { token: TENANT_A, lease: 60_000 });
      two = await WireClient.connect(guarded.tcp, { token: TENANT_B, lease: 60_000 });
      await one.hold('secret of a', { tag: 'job of a' });
      await two.hold('secret of b', { tag: 'job of b' });
    });

    after(async () => {
      one.close();
      two.close();
      await guarded.kill();
    });

    const address = () => `${guarded.tcp.replace('ws:', 'http:')}/`;

    async function enter(token, hash = '') {
      const page = await open(address() + hash);
      await page.getByLabel('Access token').fill(token);
      await page.getByRole('button', { name: 'Open the dashboard' }).click();
      return page;
    }

    test('no view of a tenant shows locks of another tenant', async () => {
      const page = await enter(TENANT_A);
      await shows(page, 'secret of a');
      for (const hash of ['#/names', '#/blocking', '#/deadlocks', '#/time', '#/clients', '#/events', '#/name?name=secret~0020of~0020b&tenant=b', '#/time?tenant=b']) {
        await page.goto(address() + hash);
        await page.waitForSelector('main h1, main .facts');
        await page.waitForFunction(() => document.querySelector('.live')?.innerText === 'live');
        const text = await page.evaluate(() => document.body.innerText);
        // The requested name is in the title of its own view.
        const shown = hash.includes('name=') ? text.replace('secret of b', '') : text;
        assert.doesNotMatch(shown, /of b/, hash);
      }
      await close(page);
    });

    test('an operator sees all tenants, and acts under their name', async () => {
      const page = await enter(OPERATOR);
      await shows(page, 'secret of a', 'secret of b', 'tenant a', 'tenant b');
      await page.getByRole('link', { name: 'secret of b' }).click();
      await page.getByRole('button', { name: 'Release…' }).click();
      await page.getByRole('dialog').getByRole('textbox').fill('secret of b');
      const lost = two.lost(1);
      await page.getByRole('dialog').getByRole('button', { name: 'Release this lock' }).click();
      assert.equal((await lost).cause, 'force-released');
      await page.getByRole('link', { name: 'Events' }).click();
      await shows(page, 'operator released', 'by olivia');
      await close(page);
    });

    test('a missing or wrong token is refused', async () => {
      const page = await enter('a token that no tenant has');
      await shows(page, 'The service does not know this token.');
      await page.context().close();
      const refused = await refusal({ tcp: guarded.tcp });
      assert.equal(refused.code, 'unauthorized');
      const inQuery = await get(`${address()}?token=${TENANT_A}`);
      assert.equal(inQuery.status, 400);
      assert.equal((await get(`${guarded.tcp.replace('ws:', 'http:')}/metrics`)).status, 401);
    });
  });

  test('DNS rebinding, other sites, frames and forms are refused', { skip: unlessFirefox(kind, 'Firefox tells a page nothing about a refused frame') }, async () => {
    const port = new URL(http()).port;
    for (const path of ['/', '/dashboard/app.js', '/metrics']) {
      assert.equal((await get(http() + path)).status, 200, path);
      assert.equal((await get(http() + path, { host: `evil.example:${port}` })).status, 421, path);
      assert.equal((await get(http() + path, { 'sec-fetch-site': 'cross-site' })).status, 403, path);
      assert.equal((await get(http() + path, {}, 'POST')).status, 405, path);
    }
    const { headers } = await get(`${http()}/`);
    assert.match(headers['content-security-policy'], /^default-src 'none'; script-src 'self';.*frame-ancestors 'none'/);
    assert.equal(headers['x-frame-options'], 'DENY');
    const site = await startSite();
    assert.equal((await refusal({ tcp: service.tcp, origin: site.origin })).code, 'forbidden-origin');
    assert.equal((await refusal({ tcp: service.tcp, origin: 'null' })).code, 'forbidden-origin');
    const page = await open(`${site.origin}/test/browser/empty.html`);
    const results = await page.evaluate(async (target) => {
      const frame = document.createElement('iframe');
      frame.src = `${target}/`;
      document.body.append(frame);
      await new Promise((resolve) => {
        frame.onload = resolve;
      });
      // A refused frame is an error page, whose document is not readable.
      const fetched = await fetch(`${target}/metrics`).then((answer) => answer.status, () => 'nothing');
      const posted = await fetch(`${target}/`, { method: 'POST', mode: 'no-cors' }).then((answer) => answer.type, () => 'nothing');
      const socket = await new Promise((resolve) => {
        const dialled = new WebSocket(`${target.replace('http', 'ws')}/dashboard`, ['navlocks.dashboard.1']);
        dialled.onmessage = ({ data }) => resolve(data);
        dialled.onerror = () => resolve('nothing');
      });
      return { fetched, posted, socket, frames: frame.contentDocument === null };
    }, http());
    assert.equal(results.fetched, 'nothing');
    assert.match(results.socket, /forbidden-origin/);
    assert.equal(results.frames, true);
    assert.equal(page.frames().some((frame) => frame.url().startsWith(http())), false, 'the frame is an error page');
    await page.context().close();
    await site.close();
  });

  test('the page of a node shows its address and its slots', async () => {
    const page = await open();
    let recovering = [3, 9];
    // A real service, whose answer about itself becomes that of a node.
    await page.routeWebSocket(/\/dashboard$/, (socket) => {
      const server = socket.connectToServer();
      server.onMessage((message) => {
        const parsed = JSON.parse(message);
        const info = parsed.shown?.service;
        if (info !== undefined) info.node = { address: 'wss://n1.example:7400', slots: 64, owned: 21, recovering };
        socket.send(JSON.stringify(parsed));
      });
    });
    await page.goto(http());
    const line = page.locator('.cluster');
    await line.waitFor();
    assert.equal(await line.innerText(), 'Node wss://n1.example:7400 · the locks of 21 of 64 slots 2 recovering 3, 9');
    recovering = undefined;
    await page.waitForFunction(() => !document.querySelector('.cluster').innerText.includes('recovering'), undefined, { timeout: 20_000 });
    await close(page);
  });

  test('keys switch between views, and every control has a name', async () => {
    const page = await open(`${http()}/`);
    await page.waitForSelector('.facts');
    await page.keyboard.press('2');
    await shows(page, 'Blocked requests');
    await page.keyboard.press('6');
    await shows(page, 'Events');
    await page.keyboard.press('p');
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    const nameless = await page.evaluate(() => [...document.querySelectorAll('input, select, button, a')]
      .filter((control) => !(control.getAttribute('aria-label') || control.textContent.trim() || control.labels?.length))
      .map((control) => control.outerHTML));
    assert.deepEqual(nameless, []);
    await close(page);
  });
});

/** Sends a request with exactly these headers. */
async function get(url, headers = {}, method = 'GET') {
  const sent = request(url, { headers, method });
  sent.end();
  const [answer] = await once(sent, 'response');
  answer.resume();
  await once(answer, 'end');
  return { status: answer.statusCode, headers: answer.headers };
}

/** Opens a dashboard connection without a page. Returns a function that sends a query. */
async function viewer({ tcp, unix, path = '/dashboard' }) {
  const socket = new WebSocket(unix === undefined ? `${tcp}${path}` : `ws+unix:${unix.slice(5)}:${path}`, ['navlocks.dashboard.1']);
  const receive = async () => JSON.parse((await once(socket, 'message'))[0]);
  await once(socket, 'open');
  socket._socket.unref();
  return async (view) => {
    const answer = receive();
    socket.send(JSON.stringify({ id: 1, view }));
    return answer;
  };
}

/** Returns the error that refuses a dashboard connection without a page. */
async function refusal({ tcp, origin }) {
  const socket = new WebSocket(`${tcp}/dashboard`, ['navlocks.dashboard.1'], { headers: origin && { origin } });
  const [text] = await once(socket, 'message');
  socket.close();
  return JSON.parse(text).error;
}
