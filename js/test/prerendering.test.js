// A page that a real Chromium prerenders and then shows.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { missing, openUnwatched } from './browser/chromium.js';
import { startSite } from './browser/site.js';
import { Service } from './service.js';

test('F128 what a prerendering page asks waits until it is seen, in order', { skip: missing, timeout: 120_000 }, async (t) => {
  const moments = new EventEmitter();
  const [asked, done] = [once(moments, 'asked'), once(moments, 'done')];
  const site = await startSite({
    '/go': async (_, response) => {
      await asked;
      response.end();
    },
    '/asked': (_, response) => {
      response.end();
      moments.emit('asked');
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
    'all is asked, unseen',
    // What is no call at all fails at once.
    'TypeError, unseen',
    'it is seen',
    'all know',
    'it dials',
    'NotSupportedError',
    'it was aborted',
    'it dials',
    'a is granted',
    'a is taken',
    '1 held, 0 pending',
  ]);
});
