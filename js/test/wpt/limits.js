// Public subtests that navlocks does not pass, each with the reason. Whatever else fails is a bug.

import { WHOLE } from './results.js';

const limits = [
  {
    place: /^Node/,
    test: /\/storage-buckets\./,
    why: 'Node has no storage buckets',
  },
  {
    place: /^Chromium/,
    test: /\/clientids\./,
    why: 'a page cannot learn its own Client.id, so the ids are those of the service',
  },
  {
    place: /^Chromium/,
    test: /\/bfcache\/held\./,
    name: /on the main thread/,
    why: 'decision 7: a page with a lock is put aside, and loses the lock to the next who asks',
  },
  {
    place: /^Chromium/,
    test: /\/bfcache\/(abort|release)\./,
    name: / on a (nested )?worker /,
    why: 'a worker is not told that its page goes, so its connection stays open and keeps the page from being put aside; the test leaves that open',
  },
  {
    place: /^Chromium/,
    test: /\/bfcache\/(abort|release)\./,
    name: / on a shared worker /,
    why: 'Chromium puts no page aside that was the last one of a shared worker; the test leaves that open',
  },
];

/** Why a subtest may fail in a place; undefined if it must not. The whole of a test must always end. */
export function limitOf(place, { test, name }) {
  if (name === WHOLE) return undefined;
  return limits.find((limit) => limit.place.test(place) && limit.test.test(test) && (limit.name?.test(name) ?? true))?.why;
}
