// The bench that a row is tried on: one lock manager, names of its own, and help to hold locks.

let counter = 0;

export class Bench {
  #clients = [];

  /**
   * @param provider.locks        the manager under test
   * @param provider.LockManager  its interface object, and the Lock's
   * @param provider.extended     the same locks with all that the package adds, if there are any
   * @param provider.lineage      the ancestors' APIs on them, with the classes of their locks
   * @param provider.installed    a global object that has the ancestors' APIs where the documents have them
   * @param provider.newClient    makes another client of the same lock space, if there can be one
   */
  constructor(provider) {
    this.provider = provider;
    this.locks = provider.locks;
    /** The class that has more than the standard's, in the same lock space. */
    this.extended = provider.extended;
    /** The ancestors' APIs over these locks. */
    this.lineage = provider.lineage;
    this.base = `test ${++counter} ${Math.random().toString(36).slice(2)}`;
  }

  /** A name that no other row uses. */
  name = (suffix = '') => `${this.base}${suffix}`;

  /** Requests a lock and holds it until `release` is called: resolves when it is granted. */
  async hold(name, options = {}, locks = this.locks) {
    const held = this.ask(name, options, locks);
    await held.granted;
    return held;
  }

  /** The same without waiting: `granted` resolves with the lock, `done` settles as the request does. */
  ask(name, options = {}, locks = this.locks) {
    const asked = { lock: undefined };
    const settled = new Promise((resolve, reject) => {
      asked.release = resolve;
      asked.fail = reject;
    });
    asked.granted = new Promise((resolve) => {
      asked.done = locks.request(name, options, (lock) => {
        asked.lock = lock;
        resolve(lock);
        return settled;
      });
    });
    asked.done.catch(() => {});
    return asked;
  }

  /** Whether the lock can be had now. */
  available = (name, mode = 'exclusive') => this.locks.request(name, { mode, ifAvailable: true }, (lock) => lock !== null);

  /** Waits until everything that is under way in this client has happened. */
  quiet = async (locks = this.locks) => {
    for (let round = 0; round < 3; round++) {
      await locks.request(this.name(` quiet ${round}`), () => {});
      await new Promise((resolve) => setTimeout(resolve));
    }
  };

  /** What a query says of this row's names. */
  query = async (locks = this.locks) => {
    const { held, pending } = await locks.query();
    const own = (info) => info.name.startsWith(this.base);
    return { held: held.filter(own), pending: pending.filter(own) };
  };

  /** Another client: see client.js. One that is to end in a special way may have to be of a special kind. */
  async client(way = 'kill') {
    const client = await this.provider.newClient(way);
    this.#clients.push(client);
    return client;
  }

  async clean() {
    await Promise.all(this.#clients.map((client) => client.end()));
  }
}

/** Tries one row. Rejects when it fails, or does not come to an end; a large one may take several times as long. */
export async function tryRow(row, provider, limit = 120_000) {
  const bench = new Bench(provider);
  const milliseconds = limit * (row.patience ?? 1);
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${milliseconds} ms`)), milliseconds);
  });
  try {
    await Promise.race([row.run(bench), late]);
  } finally {
    clearTimeout(timer);
    await bench.clean();
  }
}
