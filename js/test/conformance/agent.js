// What another client does: obeys orders that come through a channel.

/**
 * @param channel.send      posts a message to whoever gives orders
 * @param channel.receive   calls a function with each order
 * @param ends              further orders, ways in which this client can end
 */
export function serve(locks, channel, ends = {}) {
  const asked = [];

  const orders = {
    ...ends,

    async ask({ name, options }) {
      const number = asked.length;
      const one = {};
      asked.push(one);
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
      // When this is answered, the request was heard, however it travels.
      await locks.query();
      return number;
    },

    async release({ number, value }) {
      asked[number].release(value);
      await asked[number].done;
    },

    /** Holds locks of the ancestors' APIs for ever. */
    async holdAncestors({ acquired: [name], locked, flagged }) {
      const { lineageOf } = await import('../../lineage.js');
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

    /** Who this client is in queries. */
    id({ name }) {
      const own = `${name} id of ${Math.random()}`;
      return locks.request(own, async () => (await locks.query()).held.find((info) => info.name === own).clientId);
    },

    /** Many requests in both modes, some at once. */
    async storm({ name, count }) {
      let left = count;
      async function rain() {
        while (left-- > 0) {
          const mode = Math.random() < 0.5 ? 'shared' : 'exclusive';
          await locks.request(name, { mode }, () => new Promise((resolve) => setTimeout(resolve)));
        }
      }
      await Promise.all(Array.from({ length: 5 }, rain));
    },

    /** Stops this thread for good. */
    block() {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    },
  };

  channel.receive(async ({ order, number, given }) => {
    try {
      channel.send({ reply: number, value: await orders[order](given) });
    } catch (error) {
      channel.send({ reply: number, error: String(error?.stack ?? error) });
    }
  });
}
