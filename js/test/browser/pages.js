// A web site of a few texts, for pages that a test defines.

import { once } from 'node:events';
import { createServer } from 'node:http';

/** Serves texts by their paths, on a free port of loopback. */
export async function startPages(texts) {
  const server = createServer(({ url }, response) => {
    const { pathname } = new URL(url, 'http://site');
    const text = texts[pathname];
    const type = pathname.endsWith('.js') ? 'text/javascript' : 'text/html';
    if (text === undefined) response.writeHead(404).end();
    else response.writeHead(200, { 'content-type': `${type}; charset=utf-8` }).end(text);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
