// The transport of one client of a lock service. Clients of several partitions share a session.

import { mapped } from '../../internal/lists.js';
import { cycleOf, fullSnapshot, isRequestKey, standardSnapshot } from '../wire.js';

export class ServiceTransport {
  #driver;
  #machine;
  #partition;
  #number;

  /** @param client its number; undefined if the service takes no more clients */
  constructor(driver, client, partition) {
    this.#driver = driver;
    this.#machine = driver.machine;
    this.#partition = partition;
    this.#number = client;
  }

  /** The number of the client, which is opened again if it was closed while it was idle. */
  get #client() {
    this.#number = this.#machine.clients.keep(this.#number, this.#partition);
    return this.#number;
  }

  get clientId() {
    return `${this.#machine.session.number}.${this.#client}`;
  }

  get space() {
    return Object.freeze({ origin: this.#machine.session.origin, partition: this.#machine.clients.placed(this.#partition) });
  }

  request(entry) {
    this.#driver.request(this.#client, entry);
  }

  release(entry) {
    return this.#driver.release(entry);
  }

  abort(entry, isTimeout) {
    this.#machine.abort(entry, isTimeout);
  }

  downgrade(entry, mode, limit) {
    return this.#driver.downgrade(entry, { mode, limit });
  }

  check() {
    this.#driver.check();
  }

  get connection() {
    return this.#driver.connection;
  }

  /** The reason why the service is unreachable now, if so. */
  get outage() {
    return this.#driver.outage;
  }

  watchContention(entry) {
    this.#machine.watchContention(entry);
  }

  subscribe(stream) {
    this.#machine.subscribe(this.#client, stream);
  }

  unsubscribe(stream) {
    this.#machine.unsubscribe(this.#number, stream);
  }

  keepAlive(more) {
    this.#driver.wait(more);
  }

  /** Runs `work` after the service has answered all earlier messages. */
  async task(work) {
    try {
      // The cheapest query, because no request has this id.
      await this.#driver.ask(this.#client, { blockers: '0.0' });
    } catch {
      // The service is unreachable, so no earlier answer can follow.
    }
    work();
  }

  query() {
    return this.#ask({ locks: 'partition' }, ({ locks }) => standardSnapshot(locks));
  }

  inspect() {
    return this.#ask({ locks: 'partition' }, ({ locks }) => fullSnapshot(locks, Date.now()));
  }

  blockers(id) {
    const key = `${id}`;
    if (!isRequestKey(key)) throw new TypeError(`'${key}' is no id of a request: inspect() has them`);
    return this.#ask({ blockers: key }, ({ blockers: { hard, soft } }) => ({ held: hard, pending: soft }));
  }

  deadlocks() {
    return this.#ask({ waits: 'deadlocks' }, ({ waits }) => mapped(waits.cycles, cycleOf));
  }

  forceRelease(name) {
    return this.#ask({ 'force-release': name }, ({ released }) => released);
  }

  async #ask(question, read) {
    return read(await this.#driver.ask(this.#client, question));
  }
}
