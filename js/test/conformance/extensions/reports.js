// Details of locks and requests: tokens, tags, blockers, deadlocks.

import { equal, ok, same } from '../check.js';

export const reports = [
  {
    id: 'extension',
    title: 'fencing tokens grow from grant to grant, across clients',
    needs: ['newClient'],
    async run(bench) {
      const { extended: locks, name } = bench;
      const tokens = [];
      const note = (lock) => tokens.push(lock.fencingToken);
      for (let count = 0; count < 3; count++) await locks.request(name(), note);
      const other = await bench.client();
      await (await other.hold(name())).release();
      await locks.request(name(), note);
      same([...tokens].sort((one, two) => one - two), tokens);
      equal(new Set(tokens).size, tokens.length);
      ok(tokens[3] - tokens[2] > 1, `${tokens}`);
    },
  },
  {
    id: 'extension',
    title: 'inspect() returns id, scope, client, tag and time, and blockers() returns ids',
    async run({ extended: locks, name }) {
      const [a, b] = [name('a'), name('b')];
      const start = Date.now() - 1000;
      const held = await locks.hold([a, b], { tag: 'nightly import' });
      const waiting = locks.hold(a, { mode: 'shared' });
      const snapshot = await locks.inspect();
      const [lock] = snapshot.held.filter(({ scope }) => scope[0] === a);
      const [request] = snapshot.pending.filter(({ scope }) => scope[0] === a);
      same(lock.scope, [a, b]);
      same([lock.tag, lock.mode, lock.clientId, lock.fencingToken], ['nightly import', 'exclusive', locks.clientId, held.fencingToken]);
      ok(lock.since >= start && lock.since <= Date.now() + 1000, `since ${lock.since}`);
      same([request.tag, request.mode, 'fencingToken' in request], [undefined, 'shared', false]);
      same(await locks.blockers(request.id), { held: [lock.id], pending: [] });
      same(await locks.blockers(lock.id), { held: [], pending: [] });
      const { held: rows } = await locks.query();
      same(rows.filter((info) => [a, b].includes(info.name)).map((info) => info.name), [a, b]);
      held.release();
      (await waiting).release();
      same((await locks.inspect()).held.filter(({ tag }) => tag !== undefined), []);
    },
  },
  {
    id: 'F115',
    title: 'deadlocks are found, across clients',
    needs: ['newClient'],
    async run(bench) {
      const { extended: locks, name } = bench;
      const [a, b] = [name('a'), name('b')];
      const other = await bench.client();
      const mine = await locks.hold(a);
      await other.hold(b);
      await other.request(a);
      const wanted = locks.hold(b);
      const about = async () => (await locks.deadlocks()).filter(({ clients }) => clients.includes(locks.clientId));
      const [deadlock] = await about();
      equal(deadlock.ids.length, 4);
      equal(deadlock.clients.length, 2);
      await other.kill();
      (await wanted).release();
      mine.release();
      same(await about(), []);
    },
  },
];
