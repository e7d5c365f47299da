// Another client as a case sees it: sends commands to an agent.

export class Client {
  #channel;
  #commands = [];
  #requests = [];

  /** @param channel has send(), receive() and kill() of the agent */
  constructor(channel, ways) {
    this.#channel = channel;
    this.ways = ['kill', ...ways];
    for (const way of ways) this[way] = () => this.#end(way);
    channel.receive((message) => this.#handle(message));
  }

  /** Makes a request. Resolves when the lock space has received it. */
  async request(name, options = {}) {
    const number = await this.#command('request', { name, options });
    const { granted, outcome } = this.#requestOf(number);
    return { granted, outcome, release: (value) => this.#command('release', { number, value }) };
  }

  async hold(name, options) {
    const request = await this.request(name, options);
    await request.granted;
    return request;
  }

  /** Holds an acquire(), a requestLock() and a requestFlag(), each on these names. */
  holdOlderLocks(acquired, locked, flagged) {
    return this.#command('holdOlderLocks', { acquired, locked, flagged });
  }

  id(name) {
    return this.#command('id', { name });
  }

  storm(name, count) {
    return this.#command('storm', { name, count });
  }

  block() {
    this.#command('block', {});
  }

  kill() {
    return this.#channel.kill();
  }

  /** Ends the client without waiting until its locks are released. */
  end() {
    return (this.#channel.end ?? this.#channel.kill)();
  }

  #end(way) {
    this.#command(way, {});
    return this.#channel.ended;
  }

  #command(command, given) {
    return new Promise((resolve, reject) => {
      const number = this.#commands.push({ resolve, reject }) - 1;
      this.#channel.send({ command, number, given });
    });
  }

  #requestOf(number) {
    return (this.#requests[number] ??= { granted: deferred(), outcome: deferred() });
  }

  #handle({ reply, error, event, number, value }) {
    if (event !== undefined) {
      this.#requestOf(number)[event].resolve(value);
    } else if (error !== undefined) {
      this.#commands[reply].reject(new Error(`in the other client: ${error}`));
    } else {
      this.#commands[reply].resolve(value);
    }
  }
}

/** Returns a promise with its resolve(). */
function deferred() {
  let resolve;
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return Object.assign(promise, { resolve });
}
