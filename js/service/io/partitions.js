// The sessions of one connection. A service has one for all partitions; in a cluster each partition
// has a session of its own.

import { KeptMap } from '../../internal/collections.js';
import { append } from '../../internal/lists.js';

export class Partitions {
  /** Sessions by their partition. */
  #sessions = new KeptMap();
  #create;

  /**
   * @param create begins the session of another partition, beside another one
   */
  constructor(session, create) {
    this.#sessions.set(session.machine.clients.partitionOf(0), session);
    this.#create = create;
  }

  /** A new client in this partition: { session, client }. */
  open(session, partition) {
    const known = session.machine.hasOnePartition ? this.#sessions.get(partition) : session;
    if (known !== undefined) return { session: known, client: known.machine.clients.open(partition) };
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
