// A small web site with the files of this package.

import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
const types = { '.html': 'text/html', '.js': 'text/javascript', '.json': 'application/json' };

/** A host name of the site that browsers do not take for loopback. */
export const INSECURE_HOST = 'insecure.test';

/** Lets pages share memory, which they need to block a thread. */
export const headers = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
  'cross-origin-resource-policy': 'cross-origin',
  // Pages of an opaque origin load the same files.
  'access-control-allow-origin': '*',
  'cache-control': 'no-cache',
};

async function answer({ url }, response) {
  const path = pathOf(url);
  const type = types[extname(path)];
  try {
    if (type === undefined) throw new Error('not a file of the site');
    const body = await readFile(join(root, path));
    response.writeHead(200, { ...headers, 'content-type': type }).end(body);
  } catch {
    response.writeHead(404, headers).end();
  }
}

function pathOf(url) {
  return normalize(decodeURIComponent(new URL(url, 'http://site').pathname));
}

/**
 * Returns a function that serves a module of the package and its imports as one minified script,
 * which a page loads in a fraction of the time.
 */
export function bundled(path) {
  const made = build({ entryPoints: [join(root, path)], bundle: true, minify: true, format: 'esm', write: false });
  return async (_, response) => {
    const { outputFiles } = await made;
    response.writeHead(200, { ...headers, 'content-type': 'text/javascript' }).end(outputFiles[0].contents);
  };
}

/**
 * Starts the site on a free port. Loopback counts as secure.
 *
 * @param calls functions that answer certain paths instead of files
 */
export async function startSite(calls = {}) {
  const listener = (request, response) => (calls[pathOf(request.url)] ?? answer)(request, response);
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  return {
    origin: `http://127.0.0.1:${port}`,
    /** The same files at another site, which is secure too. */
    other: `http://localhost:${port}`,
    /** The same files at an insecure origin, by a name that chromium.js maps. */
    insecure: `http://${INSECURE_HOST}:${port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
