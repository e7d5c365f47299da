// The conformance cases in pages, frames and all kinds of workers of real browsers, through a
// real service.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { Browsers, kinds, soakedKinds } from '../browser/browsers.js';
import { KINDS, runCases } from '../browser/conformance.js';
import { headers, startSite } from '../browser/site.js';
import { Service } from '../support/service.js';

/** So long that only the end of a client releases its locks, and never the end of a lease. */
const lease = 600_000;

for (const kind of kinds) describe(`${kind.name}`, { skip: kind.missing }, () => {
  const browsers = new Browsers(kind);
  let site;
  let service;

  before(async () => {
    site = await startSite({ '/test/browser/bundled.js': serveBundle });
    service = await Service.start(['--lease-max', '10m', '--allow-origin', site.origin]);
  });

  after(async () => {
    await browsers.close();
    await site.close();
    await service.kill();
  });

  for (const place of soakedKinds.includes(kind) ? KINDS : ['page']) {
    test(`the standard's cases pass: ${place}`, (t) => runAll(t, { kind: place }, 100));
    test(`the extensions' cases pass: ${place}`, (t) => runAll(t, { kind: place, body: 'extensions' }, 20));
    test(`the older drafts' cases pass: ${place}`, (t) => runAll(t, { kind: place, body: 'lineage' }, 50));
  }

  if (soakedKinds.includes(kind)) test("the standard's cases pass, bundled and minified", (t) => runAll(t, { kind: 'page', provider: 'bundled' }, 100));

  /** Runs every case of a body in a place. */
  async function runAll(t, place, least) {
    const given = { provider: 'service', ...place, service: service.tcp, lease };
    let count = 0;
    for await (const { id, title, passed, error } of runCases(() => browsers.open(), site.origin, given)) {
      count++;
      t.diagnostic(`${passed ? 'ok' : 'not ok'} ${id} ${title}`);
      assert.ok(passed, `${id} ${title}: ${error}`);
    }
    assert.ok(count > least, `only ${count} cases`);
  }
});

/** Serves browser/service.js and its imports as one minified script. */
async function serveBundle(_, response) {
  const entryPoints = [fileURLToPath(new URL('../browser/service.js', import.meta.url))];
  const { outputFiles } = await build({ entryPoints, bundle: true, minify: true, format: 'esm', write: false });
  response.writeHead(200, { ...headers, 'content-type': 'text/javascript' }).end(outputFiles[0].contents);
}
