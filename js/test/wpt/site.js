// A web site of the public tests: the files of the checkout, and those that its own server
// generates.

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { text } from 'node:stream/consumers';
import { INSECURE_HOST } from '../browser/site.js';
import { meta, read, root, scriptsOf } from './checkout.js';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.idl': 'text/plain' };
const WORKERS = ['worker', 'sharedworker', 'serviceworker'];

/** Two secure origins of different sites. */
const HOSTS = ['localhost', '127.0.0.1'];

/** Stores the results of a test, and extends its time limit for busy machines. */
const REPORT = `
  setup({ output: false, timeout_multiplier: 3 });
  add_completion_callback((tests, { status, message }) => {
    globalThis.publicResults = {
      status,
      message,
      subtests: tests.map(({ name, status, message }) => ({ name, status, message })),
    };
  });
`;

/** Returns the code by which the checkout's own server describes the global of a script. */
function describeGlobal(kind) {
  return `self.GLOBAL = { isWindow: () => ${kind === 'window'}, isWorker: () => ${kind !== 'window'}, isShadowRealm: () => false };`;
}

const START = {
  worker: (script) => `fetch_tests_from_worker(new Worker('${script}'));`,
  sharedworker: (script) => `fetch_tests_from_worker(new SharedWorker('${script}'));`,
  serviceworker: (script) => `promise_setup(async () => {
    const registration = await navigator.serviceWorker.register('${script}', { scope: './nowhere/' });
    fetch_tests_from_worker(registration.installing);
  });`,
};

function page(timeout, ...scripts) {
  const harness = ['/resources/testharness.js', '/resources/testharnessreport.js'].map((path) => `<script src="${path}"></script>`);
  return `<!doctype html><meta charset="utf-8"><title>test</title>${timeout.map((length) => `<meta name="timeout" content="${length}">`).join('')}${harness.join('')}${scripts.join('')}`;
}

/** Returns a file that the checkout's own server generates; undefined for other paths. */
function generated(path, navlocks) {
  const [, stem, kind, type] = /^(.*\.any)(?:\.(\w+))?\.(html|js)$/.exec(path) ?? [];
  if (path === '/navlocks.js') return navlocks;
  if (path === '/resources/testharnessreport.js') return REPORT;
  if (path === '/resources/WebIDLParser.js') return read('/resources/webidl2/lib/webidl2.js');
  if (type === 'html' && kind === undefined) {
    const scripts = [...scriptsOf(`${stem}.js`), `${stem}.js`].map((script) => `<script src="${script}"></script>`);
    return page(meta(`${stem}.js`, 'timeout'), `<script>${describeGlobal('window')}</script>`, ...scripts);
  }
  if (type === 'html') return page(meta(`${stem}.js`, 'timeout'), `<script>${START[kind](`${stem}.${kind}.js`)}</script>`);
  if (type === 'js' && kind !== undefined) {
    const scripts = ['/navlocks.js', '/resources/testharness.js', ...scriptsOf(`${stem}.js`), `${stem}.js`];
    return `${describeGlobal(kind)}\nimportScripts(${scripts.map((script) => `'${script}'`)});\ndone();`;
  }
  return undefined;
}

/** Fills in the addresses of the site, with http: a loopback address is secure too. */
function filled(body, port) {
  return body
    .replaceAll(/\{\{ports\[\w+\]\[\d\]\}\}/g, port)
    .replaceAll(/\{\{hosts\[alt\]\[\w*\]\}\}/g, HOSTS[1])
    .replaceAll(/\{\{(host|domains\[\w*\])\}\}/g, HOSTS[0])
    .replaceAll('https://', 'http://');
}

/** Starts the site on a free port. `navlocks` is the script that every worker loads first. */
export async function startPublicSite() {
  /** Messages between pages, by address. */
  const letters = new Map();
  const site = { navlocks: '', close };

  function mail({ method, body, uuid }) {
    const queue = letters.get(uuid) ?? letters.set(uuid, []).get(uuid);
    if (method === 'POST') return queue.push(body) && 'done';
    return queue.shift() ?? 'not ready';
  }

  async function answer(request) {
    const url = new URL(request.url, 'http://site');
    const path = normalize(decodeURIComponent(url.pathname));
    if (path === '/common/dispatcher/dispatcher.py') {
      return mail({ method: request.method, body: await text(request), uuid: url.searchParams.get('uuid') });
    }
    const made = generated(path, site.navlocks);
    if (made !== undefined) return made;
    if (!(extname(path) in TYPES) || !existsSync(join(root, path))) return undefined;
    // The worker imports its own script under another address: a service worker loads each once.
    if (WORKERS.includes(request.headers['sec-fetch-dest'])) return `importScripts('/navlocks.js', '${path}?plain');`;
    return path.includes('.sub.') ? filled(read(path), server.address().port) : read(path);
  }

  const server = createServer(async (request, response) => {
    const type = TYPES[extname(new URL(request.url, 'http://site').pathname)];
    // A message is read once, so it must not be stored. Pages must be, for the back/forward cache.
    const keep = type === undefined ? 'no-store' : 'no-cache';
    const headers = { 'access-control-allow-origin': '*', 'cache-control': keep, 'content-type': `${type ?? 'text/plain'}; charset=utf-8` };
    try {
      const body = await answer(request);
      response.writeHead(body === undefined ? 404 : 200, headers).end(body);
    } catch (error) {
      response.writeHead(500, headers).end(String(error.stack));
    }
  }).listen(0, HOSTS[1]);
  await once(server, 'listening');

  async function close() {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }

  const origins = HOSTS.map((host) => `http://${host}:${server.address().port}`);
  return Object.assign(site, { origins, insecure: `http://${INSECURE_HOST}:${server.address().port}` });
}
