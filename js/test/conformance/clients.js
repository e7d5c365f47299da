// Several clients: workers, frames, processes.

import { equal, ok, rejects, same } from './check.js';

const shared = { mode: 'shared' };
const needs = ['newClient'];

export const clients = [
  {
    id: 'F07',
    needs,
    title: 'clients of one space exclude each other',
    async run(t) {
      const other = await t.client();
      const held = await other.hold(t.base);
      ok(!(await t.available(t.base)));
      const waiting = t.request(t.base);
      await held.release();
      await waiting.granted;
      waiting.release();
      await waiting.done;
    },
  },
  {
    id: 'F68',
    needs,
    title: 'requests of all clients have one order',
    async run(t) {
      const others = [await t.client(), await t.client()];
      const held = await t.hold(t.base);
      const order = [];
      const waiting = [];
      for (let number = 0; number < 6; number++) {
        const request = await others[number % 2].request(t.base);
        waiting.push(request.granted.then(() => {
          order.push(number);
          return request.release();
        }));
      }
      held.release();
      await Promise.all(waiting);
      same(order, [0, 1, 2, 3, 4, 5]);
    },
  },
  {
    id: 'G5',
    needs,
    title: 'no request overtakes across clients: S, X, S',
    async run(t) {
      const [a, b, c] = [await t.client(), await t.client(), await t.client()];
      const held = await t.hold(t.base);
      const s1 = await a.request(t.base, shared);
      const x2 = await b.request(t.base);
      const s3 = await c.request(t.base, shared);
      held.release();
      await s1.granted;
      equal((await t.query()).pending.length, 2);
      await s1.release();
      await x2.granted;
      same((await t.query()).pending.map(({ mode }) => mode), ['shared']);
      await x2.release();
      await s3.granted;
      await s3.release();
    },
  },
  {
    id: 'F113',
    needs,
    title: 'pending requests are listed in request order, across clients',
    async run(t) {
      const others = [await t.client(), await t.client(), await t.client()];
      const held = await t.hold(t.base);
      const ids = [];
      for (const other of others) ids.push(await other.id(t.base));
      for (const index of [2, 0, 1]) await others[index].request(t.base);
      same((await t.query()).pending.map(({ clientId }) => clientId), [ids[2], ids[0], ids[1]]);
      held.release();
      await held.done;
    },
  },
  {
    id: 'F114',
    needs,
    title: 'another client has another id',
    async run(t) {
      const other = await t.client();
      const held = [await t.hold(t.base, shared)];
      const theirs = await other.hold(t.base, shared);
      const ids = (await t.query()).held.map(({ clientId }) => clientId);
      equal(new Set(ids).size, 2);
      held[0].release();
      await theirs.release();
    },
  },
  {
    id: 'F115',
    needs,
    title: 'a deadlock can be read from a query',
    async run(t) {
      const other = await t.client();
      const [a, b] = [t.name(' a'), t.name(' b')];
      const mine = await t.hold(a);
      const theirs = await other.hold(b);
      const iWant = t.request(b);
      const theyWant = await other.request(a);
      const { held, pending } = await t.query();
      const holder = (name) => held.find((info) => info.name === name).clientId;
      const wanter = (name) => pending.find((info) => info.name === name).clientId;
      equal(holder(a), wanter(b));
      equal(holder(b), wanter(a));
      mine.release();
      await theyWant.granted;
      await theyWant.release();
      await theirs.release();
      await iWant.granted;
      iWant.release();
      await iWant.done;
    },
  },
  {
    id: 'F116',
    needs,
    title: 'a snapshot is of one moment: never two exclusive, never exclusive beside shared',
    async run(t) {
      const others = [await t.client(), await t.client()];
      const storms = others.map((other) => other.storm(t.base, 100));
      let over = false;
      Promise.all(storms).finally(() => {
        over = true;
      });
      let seen = 0;
      while (!over) {
        const { held } = await t.query();
        const exclusive = held.filter(({ mode }) => mode === 'exclusive').length;
        ok(exclusive === 0 || held.length === 1, `${exclusive} exclusive among ${held.length}`);
        seen++;
        await new Promise((resolve) => setTimeout(resolve));
      }
      await Promise.all(storms);
      ok(seen > 0);
    },
  },
  {
    id: 'G14',
    needs,
    title: 'a steal right after the grant rejects the victim',
    async run(t) {
      const other = await t.client();
      for (let round = 0; round < 20; round++) {
        const held = await t.hold(t.base);
        const theirs = await other.request(t.base);
        held.release();
        await held.done;
        const thief = t.request(t.base, { steal: true });
        equal(await theirs.outcome, 'rejected AbortError');
        await thief.granted;
        thief.release();
        await thief.done;
      }
    },
  },
  {
    id: 'G15',
    needs,
    title: 'a victim in another client settles there',
    async run(t) {
      const other = await t.client();
      const theirs = await other.hold(t.base);
      const thief = await t.hold(t.base, { steal: true });
      equal(await theirs.outcome, 'rejected AbortError');
      ok(!(await t.available(t.base)));
      thief.release();
      await thief.done;
      const mine = await t.hold(t.base);
      const theirThief = await other.request(t.base, { steal: true });
      await rejects(mine.done, 'AbortError');
      await theirThief.granted;
      await theirThief.release();
    },
  },
  {
    id: 'F120',
    needs,
    title: 'the end of a client removes its locks and requests, and the queue advances',
    async run(t) {
      const [holder, waiter] = [await t.client(), await t.client()];
      await holder.hold(t.base);
      await waiter.request(t.base);
      const mine = t.request(t.base);
      await waiter.kill();
      await t.quiet();
      equal(mine.lock, undefined);
      await holder.kill();
      await mine.granted;
      mine.release();
      await mine.done;
      same(await t.query(), { held: [], pending: [] });
    },
  },
  {
    id: 'F120',
    needs,
    title: "a dead client's pending exclusive request no longer blocks shared ones",
    async run(t) {
      const other = await t.client();
      const first = await t.hold(t.base, shared);
      await other.request(t.base);
      const second = t.request(t.base, shared);
      await t.quiet();
      equal(second.lock, undefined);
      await other.kill();
      await second.granted;
      first.release();
      second.release();
      await Promise.all([first.done, second.done]);
    },
  },
  {
    id: 'F121',
    needs,
    title: "only the dead client's locks are released",
    async run(t) {
      const [doomed, other] = [await t.client(), await t.client()];
      await doomed.hold(t.name(' a'));
      const kept = await other.hold(t.name(' b'));
      const mine = await t.hold(t.name(' c'));
      await doomed.kill();
      ok(await t.locks.request(t.name(' a'), () => true));
      same([await t.available(t.name(' b')), await t.available(t.name(' c'))], [false, false]);
      await kept.release();
      mine.release();
      await mine.done;
    },
  },
  {
    id: 'F122',
    needs,
    title: 'every way to end a client releases its locks',
    async run(t) {
      const ways = (await t.client()).ways;
      ok(ways.includes('kill'));
      for (const way of ways) {
        const other = await t.client(way);
        await other.hold(t.base);
        const mine = t.request(t.base);
        await other[way]();
        await mine.granted;
        mine.release();
        await mine.done;
      }
    },
  },
  {
    id: 'F123',
    needs,
    title: 'callbacks of a dead client do not run',
    async run(t) {
      const other = await t.client();
      const held = await t.hold(t.base);
      const theirs = await other.request(t.base);
      let delivered;
      theirs.outcome.then((outcome) => {
        delivered = outcome;
      });
      await other.kill();
      held.release();
      await held.done;
      // The grant shows that the lock space has noticed the end.
      await t.locks.request(t.base, () => {});
      await t.quiet();
      equal(delivered, undefined);
    },
  },
  {
    id: 'F124',
    needs,
    title: 'a client that ends between request, grant and callback leaks no lock',
    async run(t) {
      for (let round = 0; round < 5; round++) {
        const other = await t.client();
        const held = await t.hold(t.base);
        await other.request(t.base);
        held.release();
        await other.kill();
        equal(await t.locks.request(t.base, () => 'granted'), 'granted');
      }
    },
  },
  {
    id: 'G16',
    needs,
    title: 'a client that ends while its event loop is blocked after the grant releases its lock',
    async run(t) {
      const other = await t.client();
      const held = await t.hold(t.base);
      await other.request(t.base);
      other.block();
      held.release();
      await held.done;
      const mine = t.request(t.base);
      await other.kill();
      await mine.granted;
      mine.release();
      await mine.done;
    },
  },
  {
    id: 'F132',
    needs,
    title: 'each end of a holder grants the next client in the queue',
    async run(t) {
      const [first, second, third] = [await t.client(), await t.client(), await t.client()];
      await first.hold(t.base);
      const next = await second.request(t.base);
      const last = await third.request(t.base);
      await first.kill();
      await next.granted;
      await second.kill();
      await last.granted;
      await last.release();
    },
  },
];
