// A web server with a lock for each account. A request that waits too long for its account is
// answered 409, one whose lock is lost or whose lock service is down 503, and a shutdown waits for
// the work under locks. In js/ of a checkout: `node examples/express.js`, then
// `curl -d 100 http://127.0.0.1:3000/accounts/rent`.
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';

import express from 'express';
import { locks } from 'navlocks';

/** @param bank.read, bank.write the balances, as a database has them: `read(account)` */
export function bankServer(locks, bank, { wait = 2000 } = {}) {
  const app = express();
  app.post('/accounts/:account', express.text({ type: () => true }), async (request, response) => {
    const { account } = request.params;
    const amount = Number(request.body);
    if (!Number.isSafeInteger(amount)) return response.status(400).send('the body is no amount\n');
    const balance = await locks.request(`account/${account}`, { timeout: wait }, async (lock) => {
      const sum = (await bank.read(account)) + amount;
      // The lock may be lost meanwhile. A database that remembers the largest fencing token refuses
      // also the write that is late in spite of this look.
      lock.signal.throwIfAborted();
      await bank.write(account, sum, lock.fencingToken);
      return sum;
    });
    response.send(`${balance}\n`);
  });
  app.use((error, request, response, next) => {
    if (!(error instanceof DOMException)) return next(error);
    // Another request works on the account; or the lock was lost, or its service is out of reach.
    const status = error.name === 'TimeoutError' ? 409 : 503;
    response.status(status).set('Retry-After', '1').send(`${error.message}\n`);
  });
  return app;
}

/** Ends a server: its requests are answered, and their locks released with that. */
export async function shutDown(server, locks) {
  server.close();
  server.closeIdleConnections();
  await once(server, 'close');
  // Other work of this process may hold locks. Those of a process need no `close()`.
  await locks.drain();
  await locks.close?.();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const balances = new Map();
  const bank = { read: (account) => balances.get(account) ?? 0, write: (account, sum) => balances.set(account, sum) };
  // Several servers share one service: `await connect(url)`.
  const server = bankServer(locks, bank).listen(3000, '127.0.0.1');
  process.once('SIGTERM', () => shutDown(server, locks));
}
