// Takes the screenshot of a node in docs/dashboard.md: `node test/dashboard/node-screenshot.js
// [FOLDER]`. It needs etcd, and the command with the feature `etcd`.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Browsers } from '../browser/browsers.js';
import { command, scratch } from '../support/service.js';
import { WireClient } from './wire-client.js';

const folder = process.argv[2] ?? fileURLToPath(new URL('../../../docs/dashboard', import.meta.url));

const ETCD = 'http://127.0.0.1:23790';
const PEER = 'http://127.0.0.1:23800';
const PARTITIONS = ['billing', 'builds', 'catalogue', 'deploy', 'feeds', 'ledger', 'mail', 'orders', 'search', 'stock', 'thumbnails', 'web'];
const HOLDERS = 4;

const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

/** Resolves with the first result that is not undefined. */
async function eventually(attempt) {
  for (;;) {
    const result = await attempt();
    if (result !== undefined) return result;
    await pause(50);
  }
}

const given = ['--data-dir', scratch(), '--listen-client-urls', ETCD, '--advertise-client-urls', ETCD, '--listen-peer-urls', PEER, '--initial-advertise-peer-urls', PEER, '--initial-cluster', `default=${PEER}`];
const etcd = spawn('etcd', given, { stdio: 'ignore' });
process.on('exit', () => etcd.kill());
await eventually(() => fetch(`${ETCD}/health`).then((answer) => answer.ok || undefined, () => undefined));

async function start(name) {
  const node = spawn(command, ['serve', '--cluster', ETCD.replace('http', 'etcd'), '--node', name, '--listen', '127.0.0.1:0', '--slots', '16', '--node-lease', '2s', '--lease', '30s', '--dashboard'], { env: { ...process.env, NAVLOCKS_LOG: 'warn' }, stdio: ['ignore', 'pipe', 'ignore'] });
  process.on('exit', () => node.kill('SIGKILL'));
  const [line] = await once(createInterface(node.stdout), 'line');
  return { tcp: /ws:\S+/.exec(line)[0], kill: () => node.kill('SIGKILL') };
}

const nodes = [await start('n1'), await start('n2'), await start('n3')];

const gauge = async ({ tcp }, name) => {
  const text = await (await fetch(`${tcp.replace('ws', 'http')}/metrics`)).text();
  return Number(new RegExp(`^navlocks_${name} (\\d+)$`, 'm').exec(text)[1]);
};
const total = async (name) => (await Promise.all(nodes.map((node) => gauge(node, name)))).reduce((sum, count) => sum + count);
await eventually(async () => ((await total('slots')) === 16 ? true : undefined));
// Slots move once more when the last node has joined.
await pause(4_000);

for (const partition of PARTITIONS) {
  for (let number = 0; number < HOLDERS; number += 1) {
    const client = await WireClient.connect(nodes[0].tcp, { partition, lease: 30_000, carry: true });
    client.request(`${partition}/${number % 3}`, { tag: `${partition}-worker ${number + 1}` });
    setInterval(() => client.send({ ping: 1 }), 5_000).unref();
  }
}
await pause(7_000);
// The clients of a node that is killed do not return here, so their slots wait for their leases.
nodes.pop().kill();
const shown = await eventually(async () => {
  for (const node of nodes) if ((await gauge(node, 'slots_recovering')) > 0) return node;
  return undefined;
});

const browsers = new Browsers();
const context = await (await browsers.open()).newContext({ deviceScaleFactor: 1, viewport: { width: 1280, height: 860 }, colorScheme: 'light' });
const page = await context.newPage();
await page.goto(shown.tcp.replace('ws', 'http'));
await page.waitForSelector('.cluster .pill');
await page.waitForSelector('tbody tr');
await pause(1_500);
await page.screenshot({ path: `${folder}/node-wide-light.png` });
await page.setViewportSize({ width: 390, height: 844 });
await page.emulateMedia({ colorScheme: 'dark' });
if (process.argv[2] !== undefined) await page.screenshot({ path: `${folder}/node-narrow-dark.png` });
await browsers.close();
process.exit(0);
