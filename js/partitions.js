// The sessions of one connection. A service has one for all partitions; in a cluster each partition
// has a session of its own.

import { KeptMap } from './collections.js';
import { append } from './lists.js';

export class Partitions {
  /** Sessions by their partition. */
  #sessions = new KeptMap();
  #create;

  /**
   * @param create begins the session of another partition, beside another one
   */
  constructor(session, create) {
    this.#sessions.set(session.partition, session);
    this.#create = create;
  }

  /** A new client in this partition: { session, client }. */
  open(session, partition) {
    if (!session.hasOnePartition) return { session, client: session.openClient(partition) };
    const known = this.#sessions.get(partition);
    if (known !== undefined) return { session: known, client: known.openClient(partition) };
    const other = this.#create(partition, session);
    this.#sessions.set(partition, other);
    return { session: other, client: 0 };
  }

  each(work) {
    this.#sessions.forEach((session) => work(session));
  }

  /** Closes all sessions. */
  async close() {
    const closing = [];
    this.each((session) => append(closing, session.close()));
    for (let index = 0; index < closing.length; index++) await closing[index];
  }
}
