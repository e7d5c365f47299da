// Another client of a case: executes the commands that come through a channel.

/**
 * @param channel.send      sends a message to the case
 * @param channel.receive   calls a function with each command
 * @param ends              further commands: the ways in which this client can end
 */
export function serve(locks, channel, ends = {}) {
  const requests = [];

  const commands = {
    ...ends,

    async request({ name, options }) {
      const number = requests.length;
      const one = {};
      requests.push(one);
      one.settled = new Promise((resolve) => {
        one.release = resolve;
      });
      one.done = locks
        .request(name, options, (lock) => {
          channel.send({ event: 'granted', number, value: lock === null ? 'null' : 'lock' });
          return one.settled;
        })
        .then(
          (value) => `fulfilled ${value}`,
          (error) => `rejected ${error?.name}`,
        )
        .then((outcome) => channel.send({ event: 'outcome', number, value: outcome }));
      // The answer shows that the lock space has received the request.
      await locks.query();
      return number;
    },

    async release({ number, value }) {
      requests[number].release(value);
      await requests[number].done;
    },

    /** Holds locks of the older drafts for ever. */
    async holdOlderLocks({ acquired: [name], locked, flagged }) {
      const { lineageOf } = await import('../../lineage/lineage.js');
      const { acquire, auto, requestFlag } = lineageOf(locks);
      const never = new Promise(() => {});
      await new Promise((granted) => {
        acquire(name, () => {
          granted();
          return never;
        }).catch(() => {});
      });
      (await auto.requestLock(locked)).waitUntil(never);
      (await requestFlag(flagged, 'shared')).waitUntil(never);
    },

    /** Returns the id of this client in queries. */
    id({ name }) {
      const own = `${name} id of ${Math.random()}`;
      return locks.request(own, async () => (await locks.query()).held.find((info) => info.name === own).clientId);
    },

    /** Makes many requests in both modes, some concurrently. */
    async storm({ name, count }) {
      let left = count;
      async function requestAll() {
        while (left-- > 0) {
          const mode = Math.random() < 0.5 ? 'shared' : 'exclusive';
          await locks.request(name, { mode }, () => new Promise((resolve) => setTimeout(resolve)));
        }
      }
      await Promise.all(Array.from({ length: 5 }, requestAll));
    },

    /** Blocks this thread for ever. */
    block() {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    },
  };

  channel.receive(async ({ command, number, given }) => {
    try {
      channel.send({ reply: number, value: await commands[command](given) });
    } catch (error) {
      channel.send({ reply: number, error: String(error?.stack ?? error) });
    }
  });
}
