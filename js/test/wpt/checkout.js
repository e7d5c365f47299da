// The public tests of the Web Locks API, in a checkout of web-platform-tests. The variable WPT says where that is.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const root = process.env.WPT ?? '';

/** Why there is nothing to run; false if there is. */
export const missing = existsSync(join(root, 'web-locks')) && existsSync(join(root, 'resources', 'testharness.js'))
  ? false
  : root === ''
    ? 'WPT is not set: let it name a checkout of https://github.com/web-platform-tests/wpt'
    : `${root} is no checkout of web-platform-tests: it needs web-locks/ and resources/testharness.js`;

/** Where a script of many globals runs unless it says so. */
const GLOBALS = ['window', 'dedicatedworker'];

/** The text of a file of the checkout; its path begins with a slash. */
export function read(path) {
  return readFileSync(join(root, path), 'utf8');
}

/** What `// META: key=value` lines say for a key. */
export function meta(path, key) {
  return [...read(path).matchAll(/^\/\/ META: (\w+)=(.*)$/gm)].filter(([, found]) => found === key).map(([, , value]) => value.trim());
}

/** The scripts that a test wants before itself, as paths of the checkout. */
export function scriptsOf(path) {
  return meta(path, 'script').map((script) => new URL(script, `http://site${path}`).pathname);
}

function files() {
  return readdirSync(join(root, 'web-locks'), { recursive: true })
    .map((name) => `/web-locks/${name}`)
    .filter((path) => !path.includes('/resources/'))
    .sort();
}

/** Scripts that any runtime can try. */
export function scripts() {
  return files().filter((path) => path.endsWith('.any.js'));
}

/** Pages that use a window's Worker, and nothing else that Node lacks. */
const WORKER_PAGES = ['/web-locks/workers.https.html'];

/** Tests that Node can try. */
export function programs() {
  return [...scripts(), ...files().filter((path) => WORKER_PAGES.includes(path))];
}

/** The scripts of a page in their order: each has a path of the checkout, or a text. */
export function scriptsOfPage(path) {
  return [...read(path).matchAll(/<script(?: src="([^"]*)")?>(.*?)<\/script>/gs)].map(([, source, text]) =>
    source === undefined ? { text } : { path: new URL(source, `http://site${path}`).pathname },
  );
}

/** What each global of a browser is to load. */
const WRAPPERS = { window: 'html', dedicatedworker: 'worker.html', sharedworker: 'sharedworker.html', serviceworker: 'serviceworker.html' };

/** Every page to open in a browser: its path, the test's, and the global that it is about. */
export function pages() {
  const wrapped = scripts().flatMap((test) => {
    const globals = meta(test, 'global').flatMap((list) => list.split(','));
    return (globals.length > 0 ? globals : GLOBALS)
      .filter((global) => global in WRAPPERS)
      .map((global) => ({ test, global, path: test.replace(/js$/, WRAPPERS[global]) }));
  });
  const whole = files().filter((path) => path.endsWith('.html')).map((test) => ({ test, global: 'window', path: test }));
  return [...wrapped, ...whole];
}
