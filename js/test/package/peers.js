// Runs every case in every runtime, on its own locks and on navlocks, and writes docs/peers.md.
// npm run peers [PART OF A COLUMN'S NAME]
//
// With a part it keeps the other columns of the page, as long as the cases are the same.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { Browsers, firefox } from '../browser/browsers.js';
import { KINDS, runCases } from '../browser/conformance.js';
import { startSite } from '../browser/site.js';
import { compared, casesFor } from '../conformance/cases.js';
import { columnsOfPage, peersTable } from './peers-table.js';
import { Service } from '../support/service.js';

const file = (path) => fileURLToPath(new URL(path, import.meta.url));
const bin = (name) => file(`../../peers/node_modules/.bin/${name}`);
const runner = file('../support/conformance-runner.js');

/** A case that runs for more milliseconds has failed. */
const LIMIT_NATIVE = 10_000;
const LIMIT = 120_000;

/** The abilities of a provider with the platform's own locks. */
const NATIVE = { navigator: {}, global: {}, newClient() {} };

/** Returns whether each case of the list passed; undefined if it did not run. */
function verdicts(results) {
  const left = [...results];
  return compared.map(({ id, title }) => {
    const at = left.findIndex((result) => result.id === id && result.title === title);
    return at < 0 ? undefined : left.splice(at, 1)[0].passed;
  });
}

/** Runs each case in a process of its own: some crash it, and some leave locks behind. */
async function nativeCases(command) {
  const results = [];
  for (const [index, { id, title }] of casesFor(NATIVE).entries()) {
    const [program, ...given] = [...command, runner, 'native', LIMIT_NATIVE, index];
    let passed = false;
    try {
      const { stdout } = await promisify(execFile)(program, given.map(String), { timeout: LIMIT_NATIVE * 15, killSignal: 'SIGKILL' });
      const result = JSON.parse(stdout);
      if (result.id !== id || result.title !== title) throw new Error(`case ${index} is ${result.id} there, not ${id}`);
      ({ passed } = result);
    } catch (error) {
      // The process crashed or did not end, so its output is no verdict.
      if (error.code === undefined && error.signal === undefined) throw error;
    }
    results.push({ id, title, passed });
  }
  return verdicts(results);
}

async function ownCases(node, provider, older = provider) {
  const results = [];
  for (const [name, body] of [[provider, 'standard'], [older, 'lineage']]) {
    const { stdout } = await promisify(execFile)(node, [runner, name, `${LIMIT}`, 'all', body], { maxBuffer: 2 ** 26 });
    results.push(...stdout.trim().split('\n').map((line) => JSON.parse(line)));
  }
  return verdicts(results);
}

async function threadCases() {
  const results = [];
  for (const workerData of [{ providerName: 'installed' }, { providerName: 'lineage', body: 'lineage' }]) {
    const worker = new Worker(runner, { workerData });
    worker.on('message', (result) => results.push(result));
    await once(worker, 'exit');
  }
  return verdicts(results);
}

async function browserCases(browsers, site, bodies, limit) {
  const results = [];
  for (const given of bodies) {
    for await (const result of runCases(() => browsers.open(), site.origin, given, { limit })) results.push(result);
  }
  return verdicts(results);
}

async function version(program, ...given) {
  const { stdout } = await promisify(execFile)(program, [...given, '--version']);
  return /\d+\.\d+/.exec(stdout)[0];
}

/** Runs cases through a service of their own, because an idle service ends. */
async function servedCases(browsers, site, kind) {
  const service = await Service.start(['--lease-max', '10m', '--allow-origin', site.origin]);
  const given = { kind, provider: 'service', service: service.tcp, lease: 600_000 };
  const found = await browserCases(browsers, site, [given, { ...given, body: 'lineage' }], LIMIT);
  await service.kill();
  return found;
}

const site = await startSite();
const [browsers, foxes] = [new Browsers(), new Browsers(firefox)];
const major = async (kind) => (await kind.open()).version().split('..')[0];
const [newest, deno] = [bin('node'), bin('deno')];
const newestVersion = await version(newest);

const columns = [
  { name: `Node ${newestVersion}`, native: true, run: () => nativeCases([newest, '--expose-gc']) },
  { name: `Deno ${await version(deno)}`, native: true, run: () => nativeCases([deno, 'run', '--quiet', '--allow-all', '--v8-flags=--expose-gc']) },
  { name: `Chromium ${await major(browsers)}`, native: true, run: () => browserCases(browsers, site, [{ kind: 'page', provider: 'native' }], LIMIT_NATIVE) },
  { name: `Firefox ${await major(foxes)}`, native: true, run: () => browserCases(foxes, site, [{ kind: 'page', provider: 'native' }], LIMIT_NATIVE) },
  { name: `Node ${process.versions.node.split('..', 2).join('..')}`, run: () => ownCases(process.execPath, 'navlocks', 'lineage') },
  { name: `Node ${newestVersion}`, run: () => ownCases(newest, 'navlocks', 'lineage') },
  { name: 'worker thread', run: threadCases },
  { name: '`unix:`', run: () => ownCases(process.execPath, 'service-unix') },
  { name: '`ws:`', run: () => ownCases(process.execPath, 'service-tcp') },
  ...KINDS.map((kind) => ({
    name: { dedicated: 'dedicated worker', shared: 'shared worker', service: 'service worker' }[kind] ?? kind,
    run: () => servedCases(browsers, site, kind),
  })),
  { name: 'page in Firefox', run: () => servedCases(foxes, site, 'page') },
];

const page = file('../../../docs/peers.md');
const text = await readFile(page, 'utf8');
const part = process.argv[2] ?? '';
const known = part === '' ? [] : columnsOfPage(text, compared);

for (const column of columns) {
  const before = known.find(({ name, native }) => name === column.name && native === (column.native ?? false));
  if (before !== undefined && !column.name.includes(part)) {
    column.verdicts = before.verdicts;
    continue;
  }
  const start = performance.now();
  column.verdicts = await column.run();
  const failed = column.verdicts.filter((verdict) => verdict === false).length;
  console.log(`${column.native ? 'native' : 'navlocks'}, ${column.name}: ${failed} failed, ${Math.round((performance.now() - start) / 1000)} s`);
}

await writeFile(page, peersTable(text, compared, columns));
await browsers.close();
await foxes.close();
await site.close();
process.exit(0);
