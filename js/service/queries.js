// The queries of a session's clients.

import { KeptMap } from '../internal/collections.js';
import { append } from '../internal/lists.js';
import { describeFault, UNKNOWN_OUTCOME } from './refusals.js';
import { write } from './wire.js';

export class Queries {
  /** { id, client, question, isSent, resolve, reject } by number. */
  #known = new KeptMap();
  #next = 1;
  #limits;
  #output;

  constructor(limits, output) {
    this.#limits = limits;
    this.#output = output;
  }

  /** The number of queries without an answer. */
  get size() {
    return this.#known.size;
  }

  /**
   * Adds a query. Returns its message; undefined if the client refuses it.
   *
   * @param isSent whether the message is sent now
   */
  add(client, question, isSent, resolve, reject) {
    const text = write.ask(this.#next, client, question);
    const fault = this.#limits.ofMessage(text);
    if (fault !== undefined) {
      reject(this.#output.error(describeFault(fault)));
      return undefined;
    }
    const id = this.#next++;
    this.#known.set(id, { id, client, question, isSent, resolve, reject });
    this.#output.wait(1);
    return text;
  }

  /** Adds the clients of all queries to a set. */
  addClients(found) {
    this.#known.forEach(({ client }) => found.add(client));
  }

  answered({ id, reply }) {
    const query = this.#take(id);
    if (query === undefined) return;
    const { refused } = reply;
    if (refused === undefined) this.#output.deliver(query.resolve, reply);
    else this.#output.deliver(query.reject, this.#output.error(describeFault(refused)));
  }

  /** Returns the messages of all queries, for another connection. */
  repeated() {
    const texts = [];
    this.#known.forEach((query) => {
      const { id, client, question } = query;
      const text = write.ask(id, client, question);
      query.isSent = true;
      const refused = this.#limits.ofMessage(text);
      if (refused === undefined) append(texts, text);
      else this.answered({ id, reply: { refused } });
    });
    return texts;
  }

  /** Fails the queries that must not be sent twice, because the connection broke. */
  disconnected() {
    this.#known.forEach((query) => {
      if (isInDoubt(query)) this.#fail(query, this.#output.error(describeFault(UNKNOWN_OUTCOME)));
    });
  }

  /** Fails all queries. */
  end(error) {
    this.disconnected();
    this.#known.forEach((query) => this.#fail(query, error));
  }

  #fail({ id, reject }, error) {
    this.#take(id);
    this.#output.deliver(reject, error);
  }

  #take(id) {
    const query = this.#known.get(id);
    if (this.#known.delete(id)) this.#output.wait(-1);
    return query;
  }
}

/** Returns whether the service may have changed locks for a query without an answer. */
function isInDoubt({ question, isSent }) {
  return isSent && Object.hasOwn(question, 'force-release');
}
