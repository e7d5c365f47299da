// The clients of a session, each in one partition, by their numbers.

import { KeptMap } from './collections.js';
import { append } from './lists.js';
import { write } from './wire.js';

/** So many idle clients are kept: opening one costs as much as a request. */
const IDLE_MAX = 64;

export class Clients {
  /** The partitions of open clients by their numbers, in ascending order. */
  #partitions = new KeptMap();
  #next = 0;
  #placed;
  #sweepAt = IDLE_MAX;

  /**
   * @param partition of client 0
   * @param placed    returns the service's name of a partition; the same name by default
   */
  constructor(partition, placed = (name) => name) {
    this.#placed = placed;
    this.add(partition);
  }

  /** Adds a client. Returns its number, larger than all before. */
  add(partition) {
    this.#partitions.set(this.#next, partition);
    return this.#next++;
  }

  has(client) {
    return this.#partitions.has(client);
  }

  /** Returns the partition of a client. */
  partitionOf(client) {
    return this.#partitions.get(client);
  }

  /** Returns the service's name of a client's partition. */
  placeOf(client) {
    return this.#placed(this.partitionOf(client));
  }

  /** Whether idle clients may be half of all: removeIdle() then has a constant amortised cost. */
  get areMany() {
    return this.#partitions.size >= this.#sweepAt;
  }

  /** Removes all clients but the first that are not busy. Returns the messages that close them. */
  removeIdle(busy) {
    const texts = [];
    this.#partitions.forEach((_partition, client) => {
      if (client === 0 || busy.has(client)) return;
      this.#partitions.delete(client);
      append(texts, write.close(client));
    });
    this.#sweepAt = Math.max(IDLE_MAX, 2 * this.#partitions.size);
    return texts;
  }

  /** Returns the messages that open the clients from this number on. */
  openFrom(first) {
    const texts = [];
    this.#partitions.forEach((partition, client) => {
      if (client >= first) append(texts, write.open(client, this.#placed(partition)));
    });
    return texts;
  }
}
