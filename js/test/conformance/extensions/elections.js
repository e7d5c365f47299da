// Elections: candidates, their terms and values, and observers.

import { equal, ok, same } from '../check.js';

const next = async (leaders) => (await leaders.next()).value;

export const elections = [
  {
    id: 'E01',
    title: 'candidates lead in order, with growing terms',
    async run({ extended: locks, name }) {
      const first = await locks.elect(name(), 'one');
      const [second, third] = ['two', 'three'].map((value) => locks.elect(name(), value));
      equal(first.value, 'one');
      ok(first.held && first.resign() && !first.resign() && !first.held);
      ok((await second).term > first.term);
      (await second).resign();
      ok((await third).term > (await second).term);
      (await third).resign();
    },
  },
  {
    id: 'E02',
    title: 'an observer sees each leader once, with its term and value',
    async run({ extended: locks, name }) {
      const leaders = locks.leaders(name());
      equal(await next(leaders), null);
      const first = await locks.elect(name(), 'one');
      const { term, value, clientId } = await next(leaders);
      same([term, value, clientId], [first.term, 'one', locks.clientId]);
      const late = locks.leaders(name());
      equal((await next(late)).term, first.term);
      (await locks.elect(name('other'), 'other')).resign();
      first.resign();
      (await locks.hold(name(), { mode: 'shared' })).release();
      const second = await locks.elect(name(), 'two');
      for (const each of [leaders, late]) {
        equal(await next(each), null);
        equal((await next(each)).value, 'two');
      }
      const pending = leaders.next();
      await leaders.return();
      same([await pending, await leaders.next()], Array(2).fill({ done: true, value: undefined }));
      await late.return();
      second.resign();
    },
  },
  {
    id: 'E03',
    title: 'a leader that is robbed learns it',
    async run({ extended: locks, name }) {
      const leader = await locks.elect(name(), 'one');
      const lost = leader.lost();
      equal(await locks.forceRelease(name()), 1);
      equal(await lost, 'ForceReleased');
      equal(await leader.lost(), 'ForceReleased');
      const following = await locks.elect(name(), 'two');
      ok(following.term > leader.term && leader.signal.aborted && !leader.held);
      ok(!leader.resign() && following.resign());
    },
  },
  {
    id: 'E04',
    title: 'an aborted campaign leaves the queue',
    async run({ extended: locks, name }) {
      const leader = await locks.elect(name(), 'one');
      const controller = new AbortController();
      const campaign = locks.elect(name(), 'two', { signal: controller.signal });
      controller.abort('enough');
      equal(await campaign.catch((reason) => reason), 'enough');
      equal(await locks.elect(name(), 'two', { timeout: 0 }).catch((error) => error.name), 'TimeoutError');
      leader.resign();
      (await locks.elect(name(), 'three', { timeout: 0 })).resign();
    },
  },
];
