// A scene for screenshots and tests: a small company's locks, with queues, shared readers, scopes,
// a deadlock and a lost connection.

import { Holder } from './page.js';
import { WireClient } from './wire-client.js';

/** Starts the scene at a service. Returns its clients, and a function that ends it. */
export async function startScene(service) {
  const clients = [];
  const client = async (url = service.unix, options) => {
    const one = await WireClient.connect(url, options);
    clients.push(one);
    return one;
  };

  // A long queue behind a deployment.
  const deploy = await client();
  await deploy.hold('deploy/production', { tag: 'deploy.sh v2.41' });
  for (const tag of ['deploy.sh v2.42', 'migrate-database', 'smoke-test', 'rollback-check']) {
    (await client()).request('deploy/production', { tag });
  }

  // Concurrent readers, a writer behind them, readers behind the writer.
  for (const tag of ['search-1', 'search-2', 'search-3']) await (await client()).hold('catalogue/index', { mode: 'shared', tag });
  (await client()).request('catalogue/index', { tag: 'reindex' });
  for (const tag of ['search-4', 'search-5']) (await client()).request('catalogue/index', { mode: 'shared', tag });

  // A chain: a waiter for the deployment blocks other requests.
  const chain = await client();
  await chain.hold('billing/run', { tag: 'invoice-run' });
  chain.request('deploy/production', { tag: 'invoice-run' });
  for (const tag of ['reminders', 'ledger-export']) (await client()).request('billing/run', { tag });

  // Several names at once.
  await (await client()).hold(['account/17', 'account/42'], { tag: 'transfer 9001' });
  (await client()).request(['account/42', 'account/99'], { tag: 'transfer 9002' });

  // Clients over the network, one of which lost its connection.
  const shop = await client(service.tcp, { lease: 30_000 });
  await shop.hold('cart/8831', { tag: 'checkout' });
  const alive = setInterval(() => shop.send({ ping: 1 }), 5_000);
  const lost = await client(service.tcp, { lease: 150_000 });
  await lost.hold('cart/1207', { tag: 'checkout' });
  lost.cut();
  for (let number = 1; number <= 24; number += 1) await (await client()).hold(`session/${String(number * 131).padStart(4, '0')}`, { tag: number % 3 === 0 ? 'worker' : undefined });

  // Two processes that wait for each other.
  const holders = await Promise.all([Holder.start(service.unix), Holder.start(service.unix)]);
  const [one, two] = holders;
  await one.hold(1, 'stock/warehouse-3', { tag: 'restock' });
  await two.hold(1, 'orders/pending', { tag: 'pick-orders' });
  one.request(2, 'orders/pending', { tag: 'restock', within: 1 });
  two.request(2, 'stock/warehouse-3', { tag: 'pick-orders', within: 1 });

  // Locks that are held for short times.
  let over = false;
  const busy = await Promise.all(['thumbnails', 'mailer', 'feed-import', 'feed-export'].map(() => client()));
  const work = busy.map(async (client, index) => {
    const tag = ['thumbnails', 'mailer', 'feed-import', 'feed-export'][index];
    for (let turn = 0; !over; turn += 1) {
      const name = index < 2 ? 'queue/outgoing' : 'feed/partner';
      const id = await client.hold(name, { tag });
      await new Promise((resolve) => setTimeout(resolve, 120 + ((turn * 97 + index * 53) % 400)));
      client.release(id);
      await new Promise((resolve) => setTimeout(resolve, 30 + ((turn * 41) % 90)));
    }
  });
  return {
    holders,
    clients,
    async end() {
      over = true;
      clearInterval(alive);
      await Promise.race([Promise.allSettled(work), new Promise((resolve) => setTimeout(resolve, 2000))]);
      for (const one of clients) one.close();
      await Promise.all(holders.map((holder) => holder.close()));
    },
  };
}
