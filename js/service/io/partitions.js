// The hosts of one connection. A service has one session for all partitions; in a cluster each
// partition has a session of its own.

import { KeptMap } from '../../internal/collections.js';
import { append } from '../../internal/lists.js';
import { readPartition } from './options.js';

export class Partitions {
  /** Sessions by their partition. */
  #sessions = new KeptMap();
  #exception;
  #begin;
  #describe;

  /**
   * @param exception creates errors
   * @param begin     begins a further session with these settings
   * @param describe  returns further members of a client's host: its transport, and the platform's
   */
  constructor(exception, begin, describe) {
    this.#exception = exception;
    this.#begin = begin;
    this.#describe = describe;
  }

  /** Returns the host of a session's first client. */
  open(session) {
    const { partition } = session.options;
    this.#sessions.set(partition, session);
    return this.#host(session, 0, partition);
  }

  #host(session, client, partition) {
    return {
      ...this.#describe(session, client, partition),
      openPartition: (name) => this.#openPartition(session, readPartition(name, this.#exception)),
      close: () => this.#close(),
    };
  }

  #openPartition(session, name) {
    const known = session.machine.hasOnePartition ? this.#sessions.get(name) : session;
    if (known !== undefined) return this.#host(known, known.machine.clients.open(name), name);
    return this.open(this.#begin({ ...session.options, partition: name, beside: session.machine.session }));
  }

  /** Closes all sessions. */
  async #close() {
    const closing = [];
    this.#sessions.forEach((session) => append(closing, session.close()));
    for (let index = 0; index < closing.length; index++) await closing[index];
  }
}
