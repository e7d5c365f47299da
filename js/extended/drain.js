// The drain of a client: it takes no new requests, and waits for those that it has.

/** Observes the requests of a client for `drain()`, and passes them on to another observer. */
export class Drain {
  /** The requests that are not over. */
  #count = 0;
  /** Set while the client drains: { promise, resolve }. */
  #end;
  #next;

  constructor(next) {
    this.#next = next;
  }

  /** Refuses requests from now on. Returns a promise that resolves when the last one is over. */
  begin(Promise) {
    if (this.#end === undefined) {
      const end = {};
      end.promise = new Promise((resolve) => {
        end.resolve = resolve;
      });
      this.#end = end;
      if (this.#count === 0) end.resolve();
    }
    return this.#end.promise;
  }

  start(entry) {
    if (this.#end !== undefined) {
      throw entry.host.exception('InvalidStateError', `the client drains, so the lock '${entry.name}' is not requested: ask another process`);
    }
    this.#count++;
    this.#next?.start(entry);
  }

  grant(entry) {
    this.#next?.grant(entry);
  }

  miss(entry) {
    this.#next?.miss(entry);
  }

  end(entry, error) {
    this.#next?.end(entry, error);
    this.#count--;
    if (this.#count === 0) this.#end?.resolve();
  }
}
