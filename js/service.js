// The transport of one client of a lock service. Clients of several partitions share a session.

import { mapped } from './lists.js';
import { fullSnapshot, isRequestKey, standardSnapshot } from './wire.js';

export class ServiceTransport {
  #session;
  #partition;
  #number;

  constructor(session, client) {
    this.#session = session;
    this.#partition = session.partitionOf(client);
    this.#number = client;
  }

  /** The number of the client, which is opened again if its session closed it while it was idle. */
  get #client() {
    this.#number = this.#session.keepClient(this.#number, this.#partition);
    return this.#number;
  }

  get clientId() {
    return this.#session.clientId(this.#client);
  }

  get space() {
    return this.#session.spaceOf(this.#client);
  }

  request(entry) {
    this.#session.request(this.#client, entry);
  }

  release(entry) {
    return this.#session.release(entry);
  }

  abort(entry) {
    this.#session.abort(entry);
  }

  check() {
    this.#session.check();
  }

  get connection() {
    return this.#session.connection;
  }

  /** The reason why the service is unreachable now, if so. */
  get outage() {
    return this.#session.outage;
  }

  watchContention(entry) {
    this.#session.watchContention(entry);
  }

  subscribe(stream) {
    this.#session.subscribe(this.#client, stream);
  }

  unsubscribe(stream) {
    this.#session.unsubscribe(this.#client, stream);
  }

  keepAlive(more) {
    this.#session.keepAlive(more);
  }

  /** Runs `work` after the service has answered all earlier messages. */
  async task(work) {
    try {
      // The cheapest query, because no request has this id.
      await this.#session.ask(this.#client, { blockers: '0.0' });
    } catch {
      // The service is unreachable, so no earlier answer can follow.
    }
    work();
  }

  query() {
    return this.#ask('query', ({ snapshot }) => standardSnapshot(snapshot));
  }

  inspect() {
    return this.#ask('query', ({ snapshot }) => fullSnapshot(snapshot, Date.now()));
  }

  blockers(id) {
    const key = `${id}`;
    if (!isRequestKey(key)) throw new TypeError(`'${key}' is no id of a request: inspect() has them`);
    return this.#ask({ blockers: key }, ({ blockers: { hard, soft } }) => ({ held: hard, pending: soft }));
  }

  deadlocks() {
    return this.#ask('deadlocks', ({ deadlocks }) => mapped(deadlocks, ({ clients, requests }) => ({ clients, ids: requests })));
  }

  forceRelease(name) {
    return this.#ask({ 'force-release': name }, ({ released }) => released);
  }

  async #ask(question, read) {
    return read(await this.#session.ask(this.#client, question));
  }
}
