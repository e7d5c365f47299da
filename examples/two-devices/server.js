// Serves the page and the files of the package, and forwards to a lock service that it starts.
//
//   node server.js          for windows on this machine
//   node server.js --lan    for all devices in the network, without a password: a demonstration
//
// NAVLOCKS_BIN names the command `navlocks`; without it the script searches target and PATH.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PORT = Number(process.env.PORT ?? 8000);
const LAN = process.argv.includes('--lan');
const file = (path) => fileURLToPath(new URL(path, import.meta.url));

const server = createServer(async ({ url }, response) => {
  const { pathname } = new URL(url, 'http://page');
  const [, script] = /^\/navlocks\/((?:\w+\/)*\w+\.js)$/.exec(pathname) ?? [];
  const [path, type] = pathname === '/' ? [file('index.html'), 'text/html'] : [script && file(`../../js/${script}`), 'text/javascript'];
  if (path === undefined || !existsSync(path)) return response.writeHead(404).end('there is no such page');
  response.writeHead(200, { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-store' });
  response.end(await readFile(path));
});
server.listen(PORT, LAN ? '0.0.0.0' : '127.0.0.1');
await once(server, 'listening');

const { port } = server.address();
const addresses = Object.values(networkInterfaces()).flat().filter(({ family, internal }) => LAN && family === 'IPv4' && !internal);
const origins = ['localhost', '127.0.0.1', ...addresses.map(({ address }) => address)].map((host) => `http://${host}:${port}`);
const service = await startService(origins);

// The server forwards /locks to the service, which listens on this machine alone.
server.on('upgrade', ({ rawHeaders }, page, head) => {
  const tunnel = connect(service, '127.0.0.1');
  const lines = rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}`] : []));
  tunnel.write(['GET / HTTP/1.1', ...lines, '', ''].join('\r\n'));
  tunnel.write(head);
  page.pipe(tunnel).pipe(page);
  for (const socket of [page, tunnel]) socket.on('error', () => (page.destroy(), tunnel.destroy()));
});

console.log(`open ${origins.filter((origin) => !origin.includes('127.0.0.1')).join(' or ')} in two windows${LAN ? ', or on two devices' : ''}`);

/**
 * Starts a service that pages of these origins may use, and returns its port. It ends with this
 * process. A service keeps the locks of each origin apart, and the page has one for every address
 * of the server: this one gives them one lock space.
 */
async function startService(origins) {
  const built = ['release', 'debug'].map((profile) => file(`../../target/${profile}/navlocks`));
  const command = process.env.NAVLOCKS_BIN ?? built.find(existsSync) ?? 'navlocks';
  const folder = mkdtempSync(join(tmpdir(), 'two-devices-'));
  const given = ['serve', '--no-socket', '--fresh', '--listen', '127.0.0.1:0', '--state-dir', folder, '--share-origins', origins.join()];
  const child = spawn(command, given, { stdio: ['ignore', 'pipe', 'inherit'] });
  child.on('error', ({ message }) => {
    console.error(`${message}\nbuild the command with 'cargo build', or name it: NAVLOCKS_BIN=/path/to/navlocks node server.js`);
    process.exit(1);
  });
  let status = 1;
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => {
      status = 0;
      child.kill();
    });
  }
  child.on('exit', () => {
    rmSync(folder, { recursive: true, force: true });
    process.exit(status);
  });
  const [line] = await once(createInterface(child.stdout), 'line');
  return Number(/127\.0\.0\.1:(\d+)/.exec(line)[1]);
}
