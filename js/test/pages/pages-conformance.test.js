// The conformance cases in pages, frames and all kinds of workers of real browsers, through a
// real service.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Browsers, kinds, soakedKinds } from '../browser/browsers.js';
import { KINDS, runCases } from '../browser/conformance.js';
import { bundled, startSite } from '../browser/site.js';
import { Service } from '../support/service.js';
import { soaks } from '../support/soak.js';

/** So long that only the end of a client releases its locks, and never the end of a lease. */
const lease = 600_000;

/** Returns the scripts that a place loads: as many modules, or one that is bundled and minified. */
function providersOf(place) {
  if (soaks) return ['service', 'bundled'];
  return [place === 'page' ? 'service' : 'bundled'];
}

for (const kind of kinds) describe(`${kind.name}`, { skip: kind.missing }, () => {
  const browsers = new Browsers(kind);
  let site;
  let service;

  before(async () => {
    site = await startSite({ '/test/browser/bundled.js': bundled('test/browser/service.js') });
    service = await Service.start(['--lease-max', '10m', '--allow-origin', site.origin]);
  });

  after(async () => {
    await browsers.close();
    await site.close();
    await service.kill();
  });

  for (const place of soakedKinds.includes(kind) ? KINDS : ['page']) {
    for (const provider of providersOf(place)) {
      test(`the standard's cases pass: ${place}, ${provider}`, (t) => runAll(t, { kind: place, provider }, 100));
      if (!soaks && !['page', 'shared'].includes(place)) continue;
      test(`the extensions' cases pass: ${place}, ${provider}`, (t) => runAll(t, { kind: place, provider, body: 'extensions' }, 20));
      test(`the older drafts' cases pass: ${place}, ${provider}`, (t) => runAll(t, { kind: place, provider, body: 'lineage' }, 50));
    }
  }

  /** Runs every case of a body in a place. */
  async function runAll(t, place, least) {
    // The other clients of cases load one script instead of some seventy.
    const given = { clients: 'bundled', ...place, service: service.tcp, lease };
    let count = 0;
    for await (const { id, title, passed, error } of runCases(() => browsers.open(), site.origin, given)) {
      count++;
      t.diagnostic(`${passed ? 'ok' : 'not ok'} ${id} ${title}`);
      assert.ok(passed, `${id} ${title}: ${error}`);
    }
    assert.ok(count > least, `only ${count} cases`);
  }
});
