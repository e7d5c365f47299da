// The conformance pack, as a folder of web-platform-tests.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from '../browser/browsers.js';
import { buildPack } from '../conformance/pack/build.js';
import { scratch } from '../support/service.js';
import { soaks } from '../support/soak.js';

// Read before the checkout is replaced by one with the pack alone.
const given = process.env.WPT ?? fileURLToPath(new URL('../../../../shared/wpt', import.meta.url));
const folder = scratch();
mkdirSync(join(folder, 'web-locks'));
const rows = buildPack(join(folder, 'web-locks'));
process.env.WPT = folder;
if (existsSync(given)) symlinkSync(join(given, 'resources'), join(folder, 'resources'));
const { missing, scripts } = await import('../wpt/checkout.js');
const { buildRuntime, runInQuickJs } = await import('../wpt/quickjs.js');
const { runInPages } = await import('../wpt/pages.js');

const skip = missing && 'there is no harness: set WPT to a checkout of web-platform-tests';
const marked = (runtime) => rows.filter(({ runtimes }) => runtimes.some((name) => name.startsWith(runtime))).map(({ row }) => `${row.id} ${row.title}`);

async function collect(results) {
  const [names, failed] = [new Set(), []];
  for await (const { name, passed, message } of results) {
    names.add(name);
    if (!passed) failed.push([name, message]);
  }
  return { count: names.size - 1, failed };
}

test('the pack has every row once, and the rows that a runtime fails are candidates', () => {
  assert.ok(rows.length > 100);
  assert.equal(scripts().length, 11);
  for (const runtime of ['Chromium', 'Firefox', 'Node', 'Deno']) assert.ok(marked(runtime).length > 0, runtime);
});

test('all rows of the pack pass in QuickJS', { skip }, async () => {
  assert.equal(await buildRuntime(), false);
  const { count, failed } = await collect(runInQuickJs({ worker: false, wanted: () => true }));
  assert.deepEqual(failed, []);
  assert.equal(count, rows.length);
});

// Chromium's own locks live in another process, so some of the marked rows fail only sometimes.
test('only marked rows fail on the locks of Chromium', { skip: skip || chromium.missing || (!soaks && './test soak runs it') }, async () => {
  const path = 'candidates.tentative.https.any.html';
  const { failed } = await collect(runInPages({ kind: chromium, native: true, wanted: (page) => page.endsWith(path) }));
  const names = failed.map(([name]) => name);
  assert.deepEqual(names.filter((name) => !marked('Chromium').includes(name)), []);
  assert.deepEqual(['F01 ', 'F83 ', 'S10 '].filter((id) => !names.some((name) => name.startsWith(id))), []);
});
