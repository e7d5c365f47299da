// Every body of rows in every kind of place that a real Chromium has, through a real service.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { Browsers, missing } from './browser/chromium.js';
import { KINDS, runRows } from './browser/rows.js';
import { headers, startSite } from './browser/site.js';
import { Service } from './service.js';

/** So long that whatever is released was released by its client's end, and not because its lease was over. */
const lease = 600_000;

describe('Chromium', { skip: missing }, () => {
  const browsers = new Browsers();
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

  for (const kind of KINDS) {
    test(`every row holds in Chromium: ${kind}`, (t) => tryAll(t, { kind }, 100));
    test(`the extensions hold in Chromium: ${kind}`, (t) => tryAll(t, { kind, body: 'extensions' }, 20));
    test(`the ancestors hold in Chromium: ${kind}`, (t) => tryAll(t, { kind, body: 'lineage' }, 50));
  }

  test('every row holds in Chromium, bundled and minified', (t) => tryAll(t, { kind: 'page', provider: 'bundled' }, 100));

  /** Tries every row of a body in a place. */
  async function tryAll(t, place, least) {
    const given = { provider: 'service', ...place, service: service.tcp, lease };
    let count = 0;
    for await (const { id, title, passed, error } of runRows(() => browsers.open(), site.origin, given)) {
      count++;
      t.diagnostic(`${passed ? 'ok' : 'not ok'} ${id} ${title}`);
      assert.ok(passed, `${id} ${title}: ${error}`);
    }
    assert.ok(count > least, `only ${count} rows`);
  }
});

/** Answers with the place and all that it imports as one minified script. */
async function serveBundle(_, response) {
  const entryPoints = [fileURLToPath(new URL('./browser/service.js', import.meta.url))];
  const { outputFiles } = await build({ entryPoints, bundle: true, minify: true, format: 'esm', write: false });
  response.writeHead(200, { ...headers, 'content-type': 'text/javascript' }).end(outputFiles[0].contents);
}
