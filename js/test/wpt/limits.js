// Public subtests that navlocks does not pass, each with the reason. Every other failure is a bug.

import { WHOLE } from './results.js';

const limits = [
  {
    place: /^Node/,
    test: /\/storage-buckets\./,
    why: 'Node has no storage buckets',
  },
  {
    place: /^Node (2[4-9]|[3-9]\d)\./,
    test: /\/non-secure-context\./,
    why: 'this Node has locks of its own in every context, and its other contexts keep them',
  },
  {
    place: /^(Firefox|QuickJS)/,
    test: /\/storage-buckets\./,
    why: 'Firefox and this runtime have no storage buckets',
  },
  {
    place: /^Firefox/,
    test: /\/bfcache\//,
    why: 'Firefox caches no page of this driver, also with its own locks; the tests allow that',
  },
  {
    place: /^(Chromium|Firefox)/,
    test: /\/clientids\./,
    why: 'a page cannot read its own Client.id, so the ids are those of the service',
  },
  {
    place: /^Chromium/,
    test: /\/bfcache\/held\./,
    name: /on the main thread/,
    why: 'decision 7: a page with a lock enters the back/forward cache, and loses the lock to the next request',
  },
  {
    place: /^Chromium/,
    test: /\/bfcache\/(abort|release)\./,
    name: / on a (nested )?worker /,
    why: 'a worker gets no event when its page is cached, so its open connection prevents caching; the test allows that',
  },
  {
    place: /^Chromium/,
    test: /\/bfcache\/(abort|release)\./,
    name: / on a shared worker /,
    why: 'Chromium does not cache the last page of a shared worker; the test allows that',
  },
];

/** Returns why a subtest may fail in a place; undefined if it must pass. Every test must end. */
export function limitOf(place, { test, name }) {
  if (name === WHOLE) return undefined;
  return limits.find((limit) => limit.place.test(place) && limit.test.test(test) && (limit.name?.test(name) ?? true))?.why;
}
