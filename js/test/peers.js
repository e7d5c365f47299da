// Tries every row in every runtime, on the locks that it has of its own and on navlocks, and writes docs/peers.md.
// npm run peers

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { Browsers } from './browser/chromium.js';
import { KINDS, runRows } from './browser/rows.js';
import { startSite } from './browser/site.js';
import { compared, rowsFor } from './conformance/rows.js';
import { peersTable } from './peers-table.js';
import { Service } from './service.js';

const file = (path) => fileURLToPath(new URL(path, import.meta.url));
const bin = (name) => file(`../peers/node_modules/.bin/${name}`);
const runner = file('./run-rows.js');

/** A row that has no end after so many milliseconds has failed. */
const LIMIT_NATIVE = 10_000;
const LIMIT = 120_000;

/** What a provider of the platform's own locks can be asked for. */
const NATIVE = { navigator: {}, global: {}, newClient() {} };

/** Verdicts by row: its place in the list, and whether it passed. */
function verdicts(results) {
  const left = [...results];
  return compared.map(({ id, title }) => {
    const at = left.findIndex((result) => result.id === id && result.title === title);
    return at < 0 ? undefined : left.splice(at, 1)[0].passed;
  });
}

/** Each row in a process of its own: some crash it, and some leave locks behind. */
async function nativeRows(command) {
  const results = [];
  for (const [index, { id, title }] of rowsFor(NATIVE).entries()) {
    const [program, ...given] = [...command, runner, 'native', LIMIT_NATIVE, index];
    let passed = false;
    try {
      const { stdout } = await promisify(execFile)(program, given.map(String), { timeout: LIMIT_NATIVE * 15, killSignal: 'SIGKILL' });
      const result = JSON.parse(stdout);
      if (result.id !== id || result.title !== title) throw new Error(`row ${index} is ${result.id} there`);
      ({ passed } = result);
    } catch (error) {
      // It crashed, or did not even end; what it printed is no verdict.
      if (error.code === undefined && error.signal === undefined) throw error;
    }
    results.push({ id, title, passed });
  }
  return verdicts(results);
}

async function ownRows(node, provider, ancestors = provider) {
  const results = [];
  for (const [name, body] of [[provider, 'standard'], [ancestors, 'lineage']]) {
    const { stdout } = await promisify(execFile)(node, [runner, name, `${LIMIT}`, 'all', body], { maxBuffer: 2 ** 26 });
    results.push(...stdout.trim().split('\n').map((line) => JSON.parse(line)));
  }
  return verdicts(results);
}

async function threadRows() {
  const results = [];
  for (const workerData of [{ providerName: 'installed' }, { providerName: 'lineage', body: 'lineage' }]) {
    const worker = new Worker(runner, { workerData });
    worker.on('message', (result) => results.push(result));
    await once(worker, 'exit');
  }
  return verdicts(results);
}

async function browserRows(browsers, site, bodies, limit) {
  const results = [];
  for (const given of bodies) {
    for await (const result of runRows(() => browsers.open(), site.origin, given, { limit })) results.push(result);
  }
  return verdicts(results);
}

async function version(program, ...given) {
  const { stdout } = await promisify(execFile)(program, [...given, '--version']);
  return /\d+\.\d+/.exec(stdout)[0];
}

/** Through a service of its own: one that nobody uses for a while ends. */
async function servedRows(browsers, site, kind) {
  const service = await Service.start(['--lease-max', '10m', '--allow-origin', site.origin]);
  const given = { kind, provider: 'service', service: service.tcp, lease: 600_000 };
  const found = await browserRows(browsers, site, [given, { ...given, body: 'lineage' }], LIMIT);
  await service.kill();
  return found;
}

const site = await startSite();
const browsers = new Browsers();
const chromium = (await browsers.open()).version().split('.')[0];
const [newest, deno] = [bin('node'), bin('deno')];
const newestVersion = await version(newest);

const columns = [
  { name: `Node ${newestVersion}`, native: true, run: () => nativeRows([newest, '--expose-gc']) },
  { name: `Deno ${await version(deno)}`, native: true, run: () => nativeRows([deno, 'run', '--quiet', '--allow-all', '--v8-flags=--expose-gc']) },
  { name: `Chromium ${chromium}`, native: true, run: () => browserRows(browsers, site, [{ kind: 'page', provider: 'native' }], LIMIT_NATIVE) },
  { name: `Node ${process.versions.node.split('.', 2).join('.')}`, run: () => ownRows(process.execPath, 'navlocks', 'lineage') },
  { name: `Node ${newestVersion}`, run: () => ownRows(newest, 'navlocks', 'lineage') },
  { name: 'worker thread', run: threadRows },
  { name: '`unix:`', run: () => ownRows(process.execPath, 'service-unix') },
  { name: '`ws:`', run: () => ownRows(process.execPath, 'service-tcp') },
  ...KINDS.map((kind) => ({
    name: { dedicated: 'dedicated worker', shared: 'shared worker', service: 'service worker' }[kind] ?? kind,
    run: () => servedRows(browsers, site, kind),
  })),
];

for (const column of columns) {
  const start = performance.now();
  column.verdicts = await column.run();
  const failed = column.verdicts.filter((verdict) => verdict === false).length;
  console.log(`${column.native ? 'native' : 'navlocks'}, ${column.name}: ${failed} failed, ${Math.round((performance.now() - start) / 1000)} s`);
}

const page = file('../../docs/peers.md');
const text = await readFile(page, 'utf8');
await writeFile(page, peersTable(text, compared, columns));
await browsers.close();
await site.close();
process.exit(0);
