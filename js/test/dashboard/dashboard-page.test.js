// A page of the dashboard while its rows change under the pointer, and the pictures that it draws.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { soakedKinds, unlessFirefox } from '../browser/browsers.js';
import { Holder } from './page.js';
import { Pages, shows } from './pages.js';
import { WireClient } from './wire-client.js';
import { Service } from '../support/service.js';

const NO_FRAMES = 'WebDriver BiDi reports no messages of WebSockets';

for (const kind of soakedKinds) describe(`a page of the dashboard in ${kind.name}`, { skip: kind.missing }, () => {
  const pages = new Pages(kind);
  let service;

  before(async () => {
    service = await Service.start(['--lease-max', '10m', '--dashboard']);
  });

  after(async () => {
    await pages.end();
    await service.kill();
  });

  const http = () => service.tcp.replace('ws:', 'http:');
  const client = (partition) => WireClient.connect(service.unix, { partition });

  /** Resolves when the page has received an answer with this text. */
  const receives = (page, text) => new Promise((resolve) => {
    for (const socket of page.sockets) socket.on('framereceived', ({ payload }) => payload.includes(text) && resolve());
  });

  /** Opens a view of which one name waits, and another one is held. */
  async function openTwoNames(partition) {
    const [one, two] = [await client(partition), await client(partition)];
    await one.hold('steady');
    await one.hold('other');
    two.request('steady');
    const page = await pages.open();
    page.sockets = [];
    page.on('websocket', (socket) => page.sockets.push(socket));
    await page.goto(`${http()}/#/names?partition=${partition}&order=queue`);
    await shows(page, 'steady', 'other');
    // A second and a third waiter put the other name first.
    const swap = () => [two.request('other', { tag: 'second' }), two.request('other', { tag: 'third' })];
    return { page, swap, end: () => [one.close(), two.close()] };
  }

  test('a row keeps its element, its focus and its selection when rows change places', async () => {
    const { page, swap, end } = await openTwoNames('places');
    const order = () => page.locator('tbody tr td:first-child a').allInnerTexts();
    assert.deepEqual(await order(), ['steady', 'other']);
    const link = await page.getByRole('link', { name: 'steady' }).elementHandle();
    await link.focus();
    await link.evaluate((element) => getSelection().selectAllChildren(element));
    swap();
    await page.waitForFunction(() => document.querySelector('tbody a').innerText === 'other');
    assert.deepEqual(await order(), ['other', 'steady']);
    assert.equal(await link.evaluate((element) => element.isConnected && element.innerText), 'steady');
    assert.equal(await link.evaluate((element) => element === document.activeElement), true);
    assert.equal(await page.evaluate(() => getSelection().toString()), 'steady');
    end();
    await pages.close(page);
  });

  test('L11 a name with limited holders shows how many of the limit hold', async () => {
    const limited = await client('limits');
    const mode = { limit: 4 };
    for (const tag of ['one', 'two', 'three']) await limited.hold('build', { mode, tag });
    limited.request('build', { mode: { limit: 2 }, tag: 'pair' });
    const page = await pages.open();
    await page.goto(`${http()}/#/names?partition=limits&mode=shared`);
    await shows(page, 'build', '3 of 4');
    await page.getByRole('link', { name: 'build' }).click();
    const text = await shows(page, '3 of 4 holders, 1 waiter', 'limit 4', 'limit 2');
    assert.ok(!text.includes('object'), text);
    limited.close();
    await pages.close(page);
  });

  test('H08 a lock with a longest hold shows how much of the time is left', async () => {
    const brief = await client('holds');
    await brief.hold('report', { maxHold: 9_000_000 });
    const page = await pages.open();
    await page.goto(`${http()}/#/names?partition=holds`);
    await shows(page, 'report', '2 h left');
    await page.getByRole('link', { name: 'report' }).click();
    await shows(page, 'Held by', '2 h left');
    brief.close();
    await pages.close(page);
  });

  test('a click is not lost when an answer changes the rows under the pressed pointer', { skip: unlessFirefox(kind, NO_FRAMES) }, async () => {
    const { page, swap, end } = await openTwoNames('clicks');
    await page.getByRole('link', { name: 'steady' }).hover();
    await page.mouse.down();
    const changed = receives(page, '"waiting":2');
    swap();
    await changed;
    // The page has drawn the answer, or waits with it.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
    await page.mouse.up();
    await shows(page, '1 holder, 1 waiter');
    assert.match(page.url(), /name=steady/);
    await page.goBack();
    await page.waitForFunction(() => document.querySelector('tbody a')?.innerText === 'other');
    end();
    await pages.close(page);
  });

  test('the first rows come before a search for deadlocks', { skip: unlessFirefox(kind, NO_FRAMES) }, async () => {
    const [one, two] = [await client('rows'), await client('rows')];
    await one.hold('hot');
    two.request('hot');
    const page = await pages.open();
    const frames = [];
    const kind = ({ view: asked, shown }) => {
      const view = asked ?? shown;
      return view === undefined ? [] : [`${asked === undefined ? 'answer' : 'ask'} ${typeof view === 'string' ? view : Object.keys(view)[0]}`];
    };
    const summary = new Promise((resolve) => {
      page.on('websocket', (socket) => {
        const note = ({ payload }) => {
          frames.push(...kind(JSON.parse(payload)));
          if (frames.includes('answer deadlocks')) resolve();
        };
        socket.on('framesent', note);
        socket.on('framereceived', note);
      });
    });
    await page.goto(`${http()}/#/names?partition=rows`);
    await shows(page, 'hot');
    await summary;
    const rows = ['ask service', 'answer service', 'ask overview', 'answer overview'];
    assert.deepEqual(frames.slice(0, 4), rows);
    one.close();
    two.close();
    await pages.close(page);
  });

  test('the view of time has the newest requests of a busy client, and says what is left out', async () => {
    const busy = await client('busy');
    for (let turn = 0; turn < 150; turn += 1) busy.release(await busy.hold('often'));
    await busy.hold('kept');
    const page = await pages.open(`${http()}/#/time?partition=busy`);
    const text = await shows(page, 'kept', 'Locks and waiters now');
    assert.doesNotMatch(text, /No lock was held/);
    assert.match(text, /The newest requests are shown; where a lane is grey, earlier ones are left out/);
    assert.equal(await page.locator('.lanes rect.cut title').textContent(), '31 earlier requests not shown');
    await page.goto(`${http()}/#/time?partition=busy&ago=500000`);
    await shows(page, 'Not known', 'The service recorded nothing at that time.');
    busy.close();
    await pages.close(page);
  });

  test('a client that waits for itself is no deadlock', async () => {
    const one = await client('itself');
    await one.hold('key', { tag: 'a task' });
    one.request('key', { tag: 'another task' });
    const page = await pages.open(`${http()}/#/deadlocks`);
    await shows(page, 'No deadlock');
    await page.getByRole('link', { name: 'Blocking' }).click();
    await shows(page, '1 behind', 'another task');
    assert.equal(await page.locator('.count, main .pill.bad').count(), 0, 'neither a badge nor a mark');
    one.close();
    await pages.close(page);
  });

  test('a cycle that unrelated tasks may make is possible, and no deadlock', async () => {
    const [one, two] = [await client('tasks'), await client('tasks')];
    await one.hold('left');
    await two.hold('right');
    one.request('right', { tag: 'another task' });
    two.request('left', { tag: 'another task' });
    const page = await pages.open(`${http()}/#/deadlocks?partition=tasks`);
    const text = await shows(page, 'No deadlock', 'Possible', '2 clients');
    assert.doesNotMatch(text, /To break it|Break it/);
    // The summary with the deadlocks has the partitions too.
    await page.getByRole('link', { name: 'Names' }).click();
    await page.locator('#space option', { hasText: 'tasks' }).waitFor({ state: 'attached' });
    assert.equal(await page.locator('.count').count(), 0, 'no badge');
    one.close();
    two.close();
    await pages.close(page);
  });

  test('a holder whose process is stopped is marked until it continues', async () => {
    const holder = await Holder.start(service.unix);
    await holder.hold(1, 'suspended', { tag: 'editor' });
    const page = await pages.open(`${http()}/#/names`);
    process.kill(holder.pid, 'SIGSTOP');
    await shows(page, 'suspended', 'stopped');
    await page.getByRole('link', { name: 'suspended' }).click();
    await shows(page, '1 holder', '· stopped');
    await page.getByRole('link', { name: 'Clients' }).click();
    await shows(page, `pid ${holder.pid} stopped`);
    process.kill(holder.pid, 'SIGCONT');
    await page.waitForFunction(() => !document.querySelector('main').innerText.includes('stopped'));
    await holder.close();
    await pages.close(page);
  });

  test('no arrow of a ring is behind a box', async () => {
    const clients = await Promise.all(Array.from({ length: 9 }, () => client('rings')));
    for (const count of [2, 3, 4]) {
      const members = clients.splice(0, count);
      for (const [index, one] of members.entries()) await one.hold(`a long name ${count}/${index}`);
      for (const [index, one] of members.entries()) one.request(`a long name ${count}/${(index + 1) % count}`, { within: 1 });
    }
    for (const width of [1400, 390]) {
      const page = await pages.open(`${http()}/#/deadlocks`, { viewport: { width, height: 900 } });
      await shows(page, '3 deadlocks');
      const hidden = await page.evaluate(() => [...document.querySelectorAll('.ring svg')].flatMap((picture) => {
        const boxes = [...picture.querySelectorAll('.box')].map((box) => box.getBoundingClientRect());
        const covers = (left, top, right, bottom) => boxes.some((box) => left < box.right - 2 && right > box.left + 2 && top < box.bottom - 2 && bottom > box.top + 2);
        const arrows = [...picture.querySelectorAll('.arrow')].filter((path) => Array.from({ length: 20 }, (_, step) => path.getPointAtLength((path.getTotalLength() * (step + 1)) / 21).matrixTransform(path.getScreenCTM())).some(({ x, y }) => covers(x, y, x, y)));
        const plates = [...picture.querySelectorAll('.plate')].map((plate) => plate.getBoundingClientRect()).filter(({ left, top, right, bottom }) => covers(left, top, right, bottom));
        return arrows.length + plates.length > 0 ? [picture.getAttribute('aria-label')] : [];
      }));
      assert.deepEqual(hidden, [], `${width} px`);
      await pages.close(page);
    }
  });

  test('a name of blanks is visible and its link has a name, and a lone surrogate of a tag is escaped', async () => {
    const one = await client('blanks');
    await one.hold('   ');
    await one.hold('edge ', { tag: 'half \ud800' });
    const page = await pages.open(`${http()}/#/names?partition=blanks`);
    await shows(page, 'edge\\u{20}', 'half \\u{d800}');
    await page.getByRole('link', { name: '\\u{20}\\u{20}\\u{20}' }).click();
    await shows(page, '1 holder, 0 waiters');
    one.close();
    await pages.close(page);
  });
});
