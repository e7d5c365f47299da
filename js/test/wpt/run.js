// Runs the public tests of the Web Locks API on navlocks and on the runtimes' own locks, and prints
// the failures. Usage: WPT=CHECKOUT npm run wpt [PART OF A PATH]
//
// NAVLOCKS_WPT=ours omits the runtimes' own locks, as the test command does.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { missing, pages } from './checkout.js';
import { limitOf } from './limits.js';

if (missing) {
  console.log(`The public tests are skipped: ${missing}.`);
  process.exit(0);
}

// These modules need a browser, a service or a checkout.
const { kinds, soakedKinds } = await import('../browser/browsers.js');
const { runInPages } = await import('./pages.js');
const { runInNode } = await import('./node.js');
const { buildRuntime, runInQuickJs } = await import('./quickjs.js');
const { Service } = await import('../support/service.js');

const withNative = process.env.NAVLOCKS_WPT !== 'ours';
const part = process.argv[2] ?? '';
const wanted = (path) => path.includes(part);
if (!pages().some(({ path }) => wanted(path))) {
  console.error(`No public test has '${part}' in its path: look into web-locks/ of the checkout.`);
  process.exit(1);
}
const hasWasm = existsSync(new URL('../../native/navlocks.wasm', import.meta.url));
const newest = fileURLToPath(new URL('../../peers/node_modules/.bin/node', import.meta.url));

/** Starts a service for each test, because some leave locks behind. */
async function freshService() {
  return (await Service.start()).unix;
}

async function* nodes() {
  const found = [process.execPath, ...(existsSync(newest) ? [newest] : [])];
  if (found.length < 2) console.log('The newest Node is left out: run npm install --prefix peers.');
  for (const node of found) {
    const { stdout } = await promisify(execFile)(node, ['--print', 'process.version.slice(1)']);
    const name = `Node ${stdout.trim()}`;
    const [major] = stdout.split('.');
    yield { name, run: () => runInNode({ node, locks: () => 'installed', wanted }) };
    yield { name: `${name}, thread`, run: () => runInNode({ node, locks: () => 'installed', thread: true, wanted }) };
    if (hasWasm) yield { name: `${name}, WebAssembly, thread`, run: () => runInNode({ node, locks: () => 'installed', thread: true, engine: 'wasm', wanted }) };
    yield { name: `${name}, service`, run: () => runInNode({ node, locks: freshService, wanted }) };
    // Node has its own locks since version 24.
    if (withNative && Number(major) >= 24) yield { name, native: true, run: () => runInNode({ node, locks: () => 'native', wanted }) };
  }
}

async function* columns() {
  yield* nodes();
  const notBuilt = await buildRuntime();
  if (notBuilt) console.log(`QuickJS is left out: ${notBuilt}.`);
  else for (const worker of [false, true]) yield { name: worker ? 'QuickJS, worker' : 'QuickJS', run: () => runInQuickJs({ worker, wanted }) };
  for (const kind of kinds) {
    if (kind.missing) console.log(`${kind.name} is left out: ${kind.missing}.`);
    else for (const native of withNative ? [false, true] : [false]) yield { name: kind.name, native, run: () => runInPages({ kind, native, wanted: chosen(kind) }) };
  }
}

/** Returns which pages run: in Firefox all of them in `./test soak`, or if asked for by a part. */
function chosen(kind) {
  return soakedKinds.includes(kind) || part !== '' ? wanted : (path) => path.endsWith('.any.html');
}

let bugs = 0;

/** Prints every failure, and counts by place. */
async function count({ name, native = false, run }) {
  const counts = new Map();
  for await (const subtest of run()) {
    const place = [name, subtest.place].filter(Boolean).join(', ');
    const counted = counts.get(place) ?? counts.set(place, { passed: 0, failed: 0 }).get(place);
    counted[subtest.passed ? 'passed' : 'failed']++;
    if (subtest.passed) continue;
    const why = native ? `native: ${subtest.message}` : limitOf(place, subtest);
    if (why === undefined) bugs++;
    console.log(`${place}: ${subtest.test}: ${subtest.name}: ${why ?? `BUG: ${subtest.message}`}`);
  }
  return [...counts].map(([place, { passed, failed }]) => `| ${native ? 'native' : 'navlocks'} | ${place} | ${passed} | ${failed} |`);
}

const table = ['| locks | place | passed | failed |', '|---|---|---|---|'];
for await (const column of columns()) table.push(...(await count(column)));
console.log(`\n${table.join('\n')}\n\n${bugs} failed without a reason that is known`);
process.exit(bugs > 0 ? 1 : 0);
