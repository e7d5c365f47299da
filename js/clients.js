// The clients of a session, each in one partition, by their numbers.

import { append, each } from './lists.js';
import { write } from './wire.js';

export class Clients {
  #partitions;
  #placed;

  /**
   * @param partition of client 0
   * @param placed    returns the service's name of a partition; the same name by default
   */
  constructor(partition, placed = (name) => name) {
    this.#partitions = [partition];
    this.#placed = placed;
  }

  /** Adds a client. Returns its number. */
  add(partition) {
    return append(this.#partitions, partition) - 1;
  }

  /** Returns the service's name of a client's partition. */
  placeOf(client) {
    return this.#placed(this.#partitions[client]);
  }

  /** Returns the messages that open the clients from this number on. */
  openFrom(first) {
    const texts = [];
    each(this.#partitions, (partition, client) => {
      if (client >= first) append(texts, write.open(client, this.#placed(partition)));
    });
    return texts;
  }
}
