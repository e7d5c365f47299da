// The stories that the clients in Rust and in JavaScript both play: `tests/stories`.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { connect } from 'navlocks';
import { becomes, fails, lost } from '../support/outcomes.js';
import { Script } from '../support/script.js';
import { scratch } from '../support/service.js';

const FOLDER = fileURLToPath(new URL('../../../tests/stories', import.meta.url));
const SESSION = { session: 1, secret: 's', epoch: 1 };

/** Resolves after all promises that are settled now. */
const soon = () => new Promise((resolve) => setImmediate(resolve));

/** One story while it is played. */
class Player {
  #path = join(scratch(), 'socket');
  #script;
  /** The connection, if there is one. */
  #peer;
  #connecting;
  #locks;
  /** The promises and locks of the user's calls, by their labels. */
  #calls = new Map();

  async listen() {
    this.#script = new Script();
    await this.#script.listen(this.#path);
  }

  connect(_, limit = '60000') {
    this.#connecting = connect(`unix:${this.#path}`, { unreachableAfter: Number(limit) });
  }

  async client(message) {
    this.#peer ??= await this.#script.accept();
    if (message === 'drops') return this.#ends();
    assert.deepEqual(await this.#peer.receive(), JSON.parse(message));
  }

  async service(line) {
    if (line === 'welcomes' || line === 'resumes') {
      this.#peer.welcome({ ...SESSION, resumed: line === 'resumes' });
      this.#locks ??= await this.#connecting;
    } else if (line === 'returns') {
      await this.listen();
    } else if (line === 'breaks' || line === 'goes') {
      if (line === 'goes') this.#script.close();
      this.#peer.drop();
      this.#peer = undefined;
    } else if (line === 'closes') {
      this.#peer.close();
      await this.#ends();
    } else {
      this.#peer.send(JSON.parse(line));
      if (line.startsWith('{"error"')) return this.#ends();
      if (line.startsWith('{"welcome"')) this.#locks ??= await this.#connecting;
      else await this.#peer.settle();
    }
  }

  /** The client leaves the connection alone. */
  async #ends() {
    await this.#peer.closed;
    this.#peer = undefined;
  }

  user([verb, what, word, label, limit, ms]) {
    if (verb === 'leaves') {
      this.#locks.close();
      return;
    }
    if (verb === 'releases') {
      assert.equal(this.#calls.get(what).release(), word !== 'too');
      return;
    }
    const call = this.#call(verb, what, { [limit === 'within' ? 'timeout' : 'maxHold']: ms && Number(ms) });
    // A later line expects the failure.
    call.catch(() => {});
    this.#calls.set(label, call);
  }

  #call(verb, what, options) {
    if (verb === 'force-releases') return this.#locks.forceRelease(what);
    if (verb === 'downgrades') return this.#calls.get(what).downgrade();
    return this.#locks.hold(what, { steal: verb === 'steals', ...options });
  }

  async expect([what, label, expected, code]) {
    const call = this.#calls.get(label);
    if (what === 'down') await becomes(this.#locks, 'unreachable');
    else if (what === 'up') await becomes(this.#locks, 'connected');
    else if (what === 'granted') this.#calls.set(label, await call);
    else if (what === 'waits') assert.equal(await Promise.race([call, soon()]), undefined);
    else if (what === 'downgraded') await call;
    else if (what === 'holds') assert.equal(call.held, true);
    else if (what === 'lost') assert.equal(await lost(call), expected);
    else if (what === 'fails') {
      const { cause } = await fails(call, expected);
      if (code !== undefined) assert.equal(cause, code);
    }
    else assert.fail('unknown words');
  }

  async play(line) {
    const [, subject, rest] = /^(\w*|#):? ?(.*)$/.exec(line);
    if (subject === 'client' || subject === 'service') await this[subject](rest);
    else if (subject === 'user' || subject === 'expect') await this[subject](rest.split(' '));
    else if (subject === 'connect') this.connect(...rest.split(' '));
    else assert.match(line, /^(#.*)?$/);
  }

  async end() {
    await this.#locks.close();
    this.#script.close();
  }
}

for (const name of readdirSync(FOLDER).filter((file) => file.endsWith('.txt'))) {
  test(`the story ${name}`, async () => {
    const player = new Player();
    await player.listen();
    for (const [index, line] of readFileSync(join(FOLDER, name), 'utf8').split('\n').entries()) {
      try {
        await player.play(line);
      } catch (error) {
        error.message = `${name}:${index + 1}: ${line}: ${error.message}`;
        throw error;
      }
    }
    await player.end();
  });
}
