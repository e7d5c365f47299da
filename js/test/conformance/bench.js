// The bench of a case: a lock manager, unique names, and functions that hold locks.

let counter = 0;

export class Bench {
  #clients = [];

  /**
   * @param provider.locks        the manager under test
   * @param provider.LockManager  its interface object, and the Lock's
   * @param provider.extended     the same locks with the package's extensions, if there are any
   * @param provider.lineage      the older drafts on them, with the classes of their locks
   * @param provider.installed    a global object with the older drafts installed
   * @param provider.newClient    creates another client of the same lock space, if there can be one
   */
  constructor(provider) {
    this.provider = provider;
    this.locks = provider.locks;
    /** The extended locks of the same lock space. */
    this.extended = provider.extended;
    /** The older drafts over these locks. */
    this.lineage = provider.lineage;
    this.base = `test ${++counter} ${Math.random().toString(36).slice(2)}`;
  }

  /** Returns a name that no other case uses. */
  name = (suffix = '') => `${this.base}${suffix}`;

  /** Requests a lock and holds it until `release` is called. Resolves when it is granted. */
  async hold(name, options = {}, locks = this.locks) {
    const held = this.request(name, options, locks);
    await held.granted;
    return held;
  }

  /**
   * Requests without waiting: `granted` resolves with the lock, `done` settles with the request.
   */
  request(name, options = {}, locks = this.locks) {
    const request = { lock: undefined };
    const settled = new Promise((resolve, reject) => {
      request.release = resolve;
      request.fail = reject;
    });
    request.granted = new Promise((resolve) => {
      request.done = locks.request(name, options, (lock) => {
        request.lock = lock;
        resolve(lock);
        return settled;
      });
    });
    request.done.catch(() => {});
    return request;
  }

  /** Returns whether the lock is available now. */
  available = (name, mode = 'exclusive') => this.locks.request(name, { mode, ifAvailable: true }, (lock) => lock !== null);

  /** Waits until all earlier deliveries of this client are done. */
  quiet = async (locks = this.locks) => {
    for (let round = 0; round < 3; round++) {
      await locks.request(this.name(` quiet ${round}`), () => {});
      await new Promise((resolve) => setTimeout(resolve));
    }
  };

  /** Returns the snapshot of this case's names. */
  query = async (locks = this.locks) => {
    const { held, pending } = await locks.query();
    const own = (info) => info.name.startsWith(this.base);
    return { held: held.filter(own), pending: pending.filter(own) };
  };

  /** Creates another client that can end in this way, see client.js. */
  async client(way = 'kill') {
    const client = await this.provider.newClient(way);
    this.#clients.push(client);
    return client;
  }

  async clean() {
    await Promise.all(this.#clients.map((client) => client.end()));
  }
}

/** Runs one case. Rejects if it fails or exceeds the limit, which a large case multiplies. */
export async function runCase(testCase, provider, limit = 120_000) {
  const bench = new Bench(provider);
  const milliseconds = limit * (testCase.patience ?? 1);
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${milliseconds} ms`)), milliseconds);
  });
  try {
    await Promise.race([testCase.run(bench), late]);
  } finally {
    clearTimeout(timer);
    await bench.clean();
  }
}
