// Measures the cost of a dashboard and prints one number: dashboard.js SIDE CASE LOCKS SECONDS.
// SIDE is `with` a page of names or `alone`; NAVLOCKS_BIN names the command.
//
// CASE      prints
// cycle     nanoseconds of the service's CPU for one request and its release; LOCKS are held
// queued    the same while LOCKS requests wait in one partition
// cpu       nanoseconds of the page's CPU in a second; LOCKS are held, 1,000 change in a second
// memory    bytes of the page's process after that

import { readFileSync } from 'node:fs';
import process from 'node:process';
import { Browsers } from '../test/browser/browsers.js';
import { WireClient } from '../test/dashboard/wire-client.js';
import { Service } from '../test/support/service.js';

const [side, name, locks, seconds] = process.argv.slice(2);
const count = Number(locks);
const milliseconds = Number(seconds) * 1000;

const CHANGES_PER_SECOND = 1000;
const NAMES_OF_WAITERS = 1000;
/** Concurrent requests. */
const BATCH = 32;

const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

/** Returns the nanoseconds of CPU that a process has used. A tick is a hundredth of a second. */
function cpuOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 1e7;
}

function bytesOf(pid) {
  return Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;
}

async function holdAll(client) {
  let last;
  for (let index = 0; index < count; index += 1) last = client.request(`held/${index}`, { tag: 'bench' });
  await last?.granted;
}

async function queueAll(client) {
  const names = Math.min(NAMES_OF_WAITERS, count);
  let last;
  for (let index = 0; index < names; index += 1) last = client.request(`busy/${index}`);
  await last.granted;
  const waiters = await WireClient.connect(service.unix);
  for (let index = names; index < count; index += 1) waiters.request(`busy/${index % names}`, { tag: 'waiter' });
  return waiters;
}

/** Requests and releases as fast as the service answers. Returns the number of requests. */
async function cycle(client) {
  const end = performance.now() + milliseconds;
  let done = 0;
  for (; performance.now() < end; done += BATCH) {
    const requests = Array.from({ length: BATCH }, (_, index) => client.request(`hot/${index}`));
    await requests.at(-1).granted;
    for (const { id } of requests) client.release(id);
  }
  return done;
}

/** Requests and releases at a steady rate. */
async function change(client) {
  const begun = performance.now();
  let done = 0;
  while (performance.now() - begun < milliseconds) {
    const due = Math.floor(((performance.now() - begun) / 1000) * CHANGES_PER_SECOND);
    for (; done < due; done += 1) client.release(client.request(`change/${done % 500}`, { tag: 'bench' }).id);
    await pause(5);
  }
}

const service = await Service.start(side === 'with' ? ['--dashboard'] : []);
const client = await WireClient.connect(service.unix);
const kept = name === 'queued' ? await queueAll(client) : await holdAll(client);
const browsers = new Browsers();
let page;
let renderers = [];
if (side === 'with') {
  const browser = await browsers.open();
  page = await browser.newPage();
  await page.goto(service.tcp.replace('ws:', 'http:'));
  await page.waitForFunction(() => document.querySelector('main table') !== null);
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  // The browser keeps a spare renderer, whose cost is negligible.
  renderers = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id);
}
if (name === 'cycle' || name === 'queued') {
  const worker = await WireClient.connect(service.unix);
  const before = cpuOf(service.pid);
  const done = await cycle(worker);
  console.log((cpuOf(service.pid) - before) / done);
  worker.close();
} else {
  const worker = await WireClient.connect(service.unix);
  const cpu = () => renderers.reduce((sum, pid) => sum + cpuOf(pid), 0);
  const before = cpu();
  await change(worker);
  console.log(name === 'cpu' ? (cpu() - before) / (milliseconds / 1000) : Math.max(...renderers.map(bytesOf)));
  worker.close();
}
kept?.close();
client.close();
await browsers.close();
await service.kill();
process.exit(0);
