// A page that a real Chromium prerenders and then activates.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { chromium, openUnwatched } from '../browser/browsers.js';
import { startSite } from '../browser/site.js';
import { Service } from '../support/service.js';

test('F128 calls of a prerendering page wait for its activation, in order', { skip: chromium.missing, timeout: 120_000 }, async (t) => {
  const moments = new EventEmitter();
  const [called, done] = [once(moments, 'called'), once(moments, 'done')];
  const site = await startSite({
    '/go': async (_, response) => {
      await called;
      response.end();
    },
    '/called': (_, response) => {
      response.end();
      moments.emit('called');
    },
    '/done': async (request, response) => {
      moments.emit('done', ...JSON.parse(await text(request)));
      response.end();
    },
  });
  t.after(() => site.close());
  const service = await Service.start(['--allow-origin', site.origin]);
  t.after(() => service.kill());
  t.after(openUnwatched(`${site.origin}/test/browser/prerender.html?${new URLSearchParams({ service: service.tcp })}`));
  assert.deepEqual(await done, [
    'all calls are made, prerendering',
    // Wrong arguments reject at once.
    'TypeError, prerendering',
    'activated',
    'last listener',
    'connecting',
    'NotSupportedError',
    'aborted',
    'connecting',
    'a is granted',
    'a is taken',
    '1 held, 0 pending',
  ]);
});
