// The clients of a session, each in one partition, by their numbers.

import { KeptMap, KeptSet } from '../../internal/collections.js';
import { append, each } from '../../internal/lists.js';
import { write } from '../wire.js';

/** So many idle clients are kept: opening one costs as much as a request. */
const IDLE_MAX = 64;

export class Clients {
  /** Returns the service's name of a partition. */
  placed;
  /** The partitions of open clients by their numbers, in ascending order. */
  #partitions = new KeptMap();
  #next = 0;
  #closeIdleAt = IDLE_MAX;
  #limits;
  #send;
  #users;

  /**
   * @param options.partition of client 0
   * @param options.placed    returns the service's name of a partition; the same name by default
   * @param users             what may use a client: adds those to a set
   */
  constructor({ partition, placed = (name) => name }, limits, send, users) {
    this.placed = placed;
    this.#limits = limits;
    this.#send = send;
    this.#users = users;
    this.#add(partition);
  }

  /** Returns why no further client may be opened, if so. */
  get excess() {
    return this.#limits.ofClients(this.#partitions.size);
  }

  /** Opens a client. Returns its number; undefined if the service takes no more. */
  open(partition) {
    if (this.#partitions.size >= this.#closeIdleAt || this.excess !== undefined) this.#closeIdle();
    if (this.excess !== undefined) return undefined;
    const client = this.#add(partition);
    this.#send(write.open(client, this.placeOf(client)));
    return client;
  }

  /** Returns the number of a client in this partition: the given one if it is still open. */
  keep(client, partition) {
    return this.#partitions.has(client) ? client : this.open(partition);
  }

  /** Returns the partition of a client. */
  partitionOf(client) {
    return this.#partitions.get(client);
  }

  /** Returns the service's name of a client's partition. */
  placeOf(client) {
    return this.placed(this.partitionOf(client));
  }

  #add(partition) {
    this.#partitions.set(this.#next, partition);
    return this.#next++;
  }

  /**
   * Closes all clients but the first without a request, a query and a stream. At least half of all
   * may be idle, so the amortised cost is constant.
   */
  #closeIdle() {
    const busy = new KeptSet();
    each(this.#users, (user) => user.addClients(busy));
    this.#partitions.forEach((_partition, client) => {
      if (client === 0 || busy.has(client)) return;
      this.#partitions.delete(client);
      this.#send(write.close(client));
    });
    this.#closeIdleAt = Math.max(IDLE_MAX, 2 * this.#partitions.size);
  }

  /** Returns the messages that open the clients from this number on. */
  openFrom(first) {
    const texts = [];
    this.#partitions.forEach((partition, client) => {
      if (client >= first) append(texts, write.open(client, this.placed(partition)));
    });
    return texts;
  }
}
