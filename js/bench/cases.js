// The measured cases. Each runs the same program on every side and returns one cost. The suite
// `node` of bench/ runs them.

const nothing = async () => {};
const forever = () => new Promise(nothing);

/** Returns the nanoseconds since `start`, divided by `count`. */
function each(start, count) {
  return ((performance.now() - start) * 1e6) / count;
}

/** Requests locks that are never released. Resolves when all are held. */
function holdAll(locks, count, prefix = 'held') {
  return Promise.all(
    Array.from({ length: count }, (_, index) => new Promise((held) => {
      locks.request(`${prefix} ${index}`, () => {
        held();
        return forever();
      });
    })),
  );
}

async function sequence(locks, name, count) {
  const start = performance.now();
  for (let index = 0; index < count; index++) await locks.request(name, nothing);
  return each(start, count);
}

/** Runs requests until the runtime has compiled them, as in programs that use locks a lot. */
function warmUp(locks) {
  return sequence(locks, 'warm', 20_000);
}

/** Returns the mean of all runs of `work` that begin within `milliseconds`. */
async function within(milliseconds, work) {
  const end = performance.now() + milliseconds;
  let [sum, count] = [0, 0];
  do {
    sum += await work();
    count++;
  } while (performance.now() < end);
  return sum / count;
}

export const cases = {
  /** Request and release in sequence, one name: ns a request. */
  sequential: {
    async run(locks, count) {
      await warmUp(locks);
      return sequence(locks, 'hot', count);
    },
  },
  /** Names at once: ns a request. */
  distinct: {
    async run(locks, count) {
      await warmUp(locks);
      const start = performance.now();
      await Promise.all(Array.from({ length: count }, (_, index) => locks.request(`name ${index}`, nothing)));
      return each(start, count);
    },
  },
  /** Queued on one name: ns a request. */
  queued: {
    async run(locks, count) {
      await warmUp(locks);
      const start = performance.now();
      await Promise.all(Array.from({ length: count }, () => locks.request('queue', nothing)));
      return each(start, count);
    },
  },
  /** In sequence on one name while others are held: ns a request. */
  crowded: {
    async run(locks, count) {
      await holdAll(locks, count);
      // The first 300 ms warm up.
      await within(300, () => sequence(locks, 'hot', 100));
      return within(300, () => sequence(locks, 'hot', 100));
    },
  },
  /** Queued on one name, every second aborted; all others granted: ns a request. */
  aborted: {
    async run(locks, count) {
      await warmUp(locks);
      let release;
      const held = new Promise((resolve) => {
        release = resolve;
      });
      const holder = locks.request('queue', () => held);
      const start = performance.now();
      const controllers = [];
      const requests = Array.from({ length: count }, (_, index) => {
        if (index % 2 === 0) return locks.request('queue', nothing);
        const controller = new AbortController();
        controllers.push(controller);
        return locks.request('queue', { signal: controller.signal }, nothing).catch(nothing);
      });
      for (const controller of controllers) controller.abort();
      release();
      await Promise.all([holder, ...requests]);
      return each(start, count);
    },
  },
  /** A query with this many held and as many pending: ns a query. */
  query: {
    async run(locks, count) {
      await holdAll(locks, count);
      for (let index = 0; index < count; index++) locks.request(`held ${index}`, nothing);
      await locks.query();
      const start = performance.now();
      for (let round = 0; round < 10; round++) await locks.query();
      return each(start, 10);
    },
  },
  /** A lock that alternates between two workers: ns a grant. */
  pingpong: {
    threads: 2,
    /** In each worker: requests the lock again before it releases it. */
    async run(locks, count) {
      await turns(locks, count / 10);
      const start = performance.now();
      await turns(locks, count);
      return each(start, count * 2);
    },
  },
  /** Memory of a held lock: bytes a lock. */
  bytes: {
    async run(locks, count, { rss }) {
      await holdAll(locks, 1_000, 'warm');
      const before = await rss();
      await holdAll(locks, count);
      return ((await rss()) - before) / count;
    },
  },
};

function turns(locks, count) {
  return new Promise((resolve) => {
    let left = count;
    function turn() {
      if (--left === 0) resolve();
      // It does not wait for the next turn, so the request is not within the lock of this one.
      else locks.request('ball', { within: null }, turn);
    }
    locks.request('ball', turn);
  });
}
