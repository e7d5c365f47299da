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
      const waiting = t.ask(t.base);
      await held.release();
      await waiting.granted;
      waiting.release();
      await waiting.done;
    },
  },
  {
    id: 'F68',
    needs,
    title: 'there is one order over all clients',
    async run(t) {
      const others = [await t.client(), await t.client()];
      const held = await t.hold(t.base);
      const order = [];
      const waiting = [];
      for (let number = 0; number < 6; number++) {
        const asked = await others[number % 2].ask(t.base);
        waiting.push(asked.granted.then(() => {
          order.push(number);
          return asked.release();
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
    title: 'nobody overtakes across clients: S, X, S',
    async run(t) {
      const [a, b, c] = [await t.client(), await t.client(), await t.client()];
      const held = await t.hold(t.base);
      const s1 = await a.ask(t.base, shared);
      const x2 = await b.ask(t.base);
      const s3 = await c.ask(t.base, shared);
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
    title: 'pending requests come in the order of asking, across clients',
    async run(t) {
      const others = [await t.client(), await t.client(), await t.client()];
      const held = await t.hold(t.base);
      const ids = [];
      for (const other of others) ids.push(await other.id(t.base));
      for (const index of [2, 0, 1]) await others[index].ask(t.base);
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
      const iWant = t.ask(b);
      const theyWant = await other.ask(a);
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
    title: 'a steal right after the grant is heard of',
    async run(t) {
      const other = await t.client();
      for (let round = 0; round < 20; round++) {
        const held = await t.hold(t.base);
        const theirs = await other.ask(t.base);
        held.release();
        await held.done;
        const thief = t.ask(t.base, { steal: true });
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
      const theirThief = await other.ask(t.base, { steal: true });
      await rejects(mine.done, 'AbortError');
      await theirThief.granted;
      await theirThief.release();
    },
  },
  {
    id: 'F120',
    needs,
    title: 'when a client dies its locks and requests go, and the queue goes on',
    async run(t) {
      const [holder, waiter] = [await t.client(), await t.client()];
      await holder.hold(t.base);
      await waiter.ask(t.base);
      const mine = t.ask(t.base);
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
      await other.ask(t.base);
      const second = t.ask(t.base, shared);
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
    title: "only the dead client's locks go",
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
    title: 'every way to end counts',
    async run(t) {
      const ways = (await t.client()).ways;
      ok(ways.includes('kill'));
      for (const way of ways) {
        const other = await t.client(way);
        await other.hold(t.base);
        const mine = t.ask(t.base);
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
    title: 'a dead client hears of nothing: its callbacks do not run',
    async run(t) {
      const other = await t.client();
      const held = await t.hold(t.base);
      const theirs = await other.ask(t.base);
      let heard;
      theirs.outcome.then((outcome) => {
        heard = outcome;
      });
      await other.kill();
      held.release();
      await held.done;
      // Granted at the latest when the service hears of that end.
      await t.locks.request(t.base, () => {});
      await t.quiet();
      equal(heard, undefined);
    },
  },
  {
    id: 'F124',
    needs,
    title: 'death between request and grant, and between grant and callback, leaks nothing',
    async run(t) {
      for (let round = 0; round < 5; round++) {
        const other = await t.client();
        const held = await t.hold(t.base);
        await other.ask(t.base);
        held.release();
        await other.kill();
        equal(await t.locks.request(t.base, () => 'granted'), 'granted');
      }
    },
  },
  {
    id: 'G16',
    needs,
    title: 'a client that dies while its event loop is blocked after the grant releases',
    async run(t) {
      const other = await t.client();
      const held = await t.hold(t.base);
      await other.ask(t.base);
      other.block();
      held.release();
      await held.done;
      const mine = t.ask(t.base);
      await other.kill();
      await mine.granted;
      mine.release();
      await mine.done;
    },
  },
  {
    id: 'F132',
    needs,
    title: 'primary and successors: each death promotes the next',
    async run(t) {
      const [first, second, third] = [await t.client(), await t.client(), await t.client()];
      await first.hold(t.base);
      const next = await second.ask(t.base);
      const last = await third.ask(t.base);
      await first.kill();
      await next.granted;
      await second.kill();
      await last.granted;
      await last.release();
    },
  },
];
