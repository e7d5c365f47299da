// The public tests of the Web Locks API, in a checkout of web-platform-tests that WPT names.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const root = process.env.WPT ?? '';

/** The reason why there are no tests; false if there are some. */
export const missing = existsSync(join(root, 'web-locks')) && existsSync(join(root, 'resources', 'testharness.js'))
  ? false
  : root === ''
    ? 'WPT is not set: set it to a checkout of https://github.com/web-platform-tests/wpt'
    : `${root} is no checkout of web-platform-tests: it needs web-locks/ and resources/testharness.js`;

/** The globals of a script without a list of its own. */
const GLOBALS = ['window', 'dedicatedworker'];

/** Returns the text of a file of the checkout; its path begins with a slash. */
export function read(path) {
  return readFileSync(join(root, path), 'utf8');
}

/** Returns the values of a key in lines such as `// META: key=value`. */
export function meta(path, key) {
  return [...read(path).matchAll(/^\/\/ META: (\w+)=(.*)$/gm)].filter(([, found]) => found === key).map(([, , value]) => value.trim());
}

/** Returns the scripts that a test loads first, as paths of the checkout. */
export function scriptsOf(path) {
  return meta(path, 'script').map((script) => new URL(script, `http://site${path}`).pathname);
}

function files() {
  return readdirSync(join(root, 'web-locks'), { recursive: true })
    .map((name) => `/web-locks/${name}`)
    .filter((path) => !path.includes('/resources/'))
    .sort();
}

/** Returns the scripts that any runtime can run. */
export function scripts() {
  return files().filter((path) => path.endsWith('.any.js'));
}

/** Pages that need only Worker of the members that Node lacks. */
const WORKER_PAGES = ['/web-locks/workers.https.html'];

/** Returns the tests that Node can run. */
export function programs() {
  return [...scripts(), ...files().filter((path) => WORKER_PAGES.includes(path))];
}

/** Returns the scripts of a page in order, each as a path of the checkout or as a text. */
export function scriptsOfPage(path) {
  return [...read(path).matchAll(/<script(?: src="([^"]*)")?>(.*?)<\/script>/gs)].map(([, source, text]) =>
    source === undefined ? { text } : { path: new URL(source, `http://site${path}`).pathname },
  );
}

/** The file type that each global of a browser loads. */
const WRAPPERS = { window: 'html', dedicatedworker: 'worker.html', sharedworker: 'sharedworker.html', serviceworker: 'serviceworker.html' };

/** Returns every page for a browser: its path, the path of the test, and the global. */
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
