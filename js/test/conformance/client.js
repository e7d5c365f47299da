// Another client as a row sees it: gives orders to an agent.

export class Client {
  #channel;
  #orders = [];
  #asked = [];

  /** @param channel send, receive, kill: how to reach the agent, and how to end it from outside */
  constructor(channel, ways) {
    this.#channel = channel;
    this.ways = ['kill', ...ways];
    for (const way of ways) this[way] = () => this.#end(way);
    channel.receive((message) => this.#hear(message));
  }

  /** A request: resolves when it was made. */
  async ask(name, options = {}) {
    const number = await this.#order('ask', { name, options });
    const asked = this.#about(number);
    return {
      granted: asked.granted,
      outcome: asked.outcome,
      release: (value) => this.#order('release', { number, value }),
    };
  }

  async hold(name, options) {
    const asked = await this.ask(name, options);
    await asked.granted;
    return asked;
  }

  /** Holds an acquire(), a requestLock() and a requestFlag(), each on these names. */
  holdAncestors(acquired, locked, flagged) {
    return this.#order('holdAncestors', { acquired, locked, flagged });
  }

  id(name) {
    return this.#order('id', { name });
  }

  storm(name, count) {
    return this.#order('storm', { name, count });
  }

  block() {
    this.#order('block', {});
  }

  kill() {
    return this.#channel.kill();
  }

  /** Ends it, and waits for nobody to notice. */
  end() {
    return (this.#channel.end ?? this.#channel.kill)();
  }

  #end(way) {
    this.#order(way, {});
    return this.#channel.ended;
  }

  #order(order, given) {
    return new Promise((resolve, reject) => {
      const number = this.#orders.push({ resolve, reject }) - 1;
      this.#channel.send({ order, number, given });
    });
  }

  #about(number) {
    return (this.#asked[number] ??= { granted: deferred(), outcome: deferred() });
  }

  #hear({ reply, error, event, number, value }) {
    if (event !== undefined) {
      this.#about(number)[event].resolve(value);
    } else if (error !== undefined) {
      this.#orders[reply].reject(new Error(`in the other client: ${error}`));
    } else {
      this.#orders[reply].resolve(value);
    }
  }
}

/** A promise with its resolve. */
function deferred() {
  let resolve;
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return Object.assign(promise, { resolve });
}
