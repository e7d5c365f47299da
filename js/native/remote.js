// The engine of the main thread, with the functions of the addon, for a worker. Each client has a
// port: its close is the end of the client, so a worker that is terminated loses its locks.

import process from 'node:process';
import { MessageChannel, postMessageToThread, receiveMessageOnPort } from 'node:worker_threads';
import { COUNT, MAIL, MAIL_LENGTH, MORE, NUMBER } from './array.js';

// Read now: fake timers of a test runner replace them.
const { nextTick } = process;
const { queueMicrotask } = globalThis;

const MAIN_THREAD = 0;

/** In Deno a port does not report the end of its worker, whose locks would stay held. */
const CAN_REACH = postMessageToThread !== undefined && process.versions.deno === undefined;

const CURE = "import 'navlocks' in the main thread before its workers use locks, or start Node with --import navlocks; connect() works without it";

/** Returns why this worker has no locks, and the remedy. */
function explain() {
  if (!CAN_REACH) return 'in this runtime only the main thread can use the WebAssembly engine: use it there, or connect()';
  return `the main thread has not loaded navlocks, whose WebAssembly engine grants the locks of all threads: ${CURE}`;
}

class Client {
  #port;
  #array;
  #wake;
  #refuse;
  /** Numbers of mail that was not taken. */
  #mail = [];
  /** { resolve, reject } of each question, in order. */
  #questions = [];
  /** The calls of this turn. */
  #calls = [];
  #isWelcome = false;
  #keeps = false;
  #isClosing = false;

  constructor(hello, array, wake, refuse) {
    this.#array = array;
    this.#wake = wake;
    this.#refuse = refuse;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    this.#connect(hello, port2);
  }

  async #connect(hello, port) {
    try {
      await (CAN_REACH ? postMessageToThread(MAIN_THREAD, { navlocks: hello, port }, [port]) : undefined);
    } catch {
      // The main thread has no listener, or that of the program has thrown.
    }
    // The answer was sent before, if there is one.
    const first = receiveMessageOnPort(this.#port);
    if (first !== undefined) this.#receive(first.message);
    if (!this.#isWelcome && !this.#isClosing) this.#end(explain());
    // Only now: in Deno a port with a listener takes messages before it delivers them.
    this.#port.on('message', (message) => this.#receive(message));
    this.#keepPort();
  }

  #receive({ welcome, refusal, mail = [], answers = [] }) {
    if (welcome) this.#isWelcome = true;
    if (refusal !== undefined) return this.#end(refusal);
    for (const number of mail) this.#mail.push(number);
    if (mail.length > 0) this.#wake();
    for (const { value, failure } of answers) {
      const { resolve, reject } = this.#questions.shift();
      if (failure === undefined) resolve(value);
      else reject(new Error(failure));
    }
    this.#keepPort();
  }

  #end(sentence) {
    this.#isWelcome = true;
    this.#port.close();
    for (const { reject } of this.#questions) reject(new DOMException(sentence, 'NotSupportedError'));
    this.#questions = [];
    this.#refuse(sentence);
  }

  /** Sends a call for the request whose number is in the array. Its effects come as mail. */
  send(verb, ...given) {
    this.#add({ verb, number: this.#array[NUMBER], outer: 0, given, asks: false });
    return true;
  }

  ask(verb, ...given) {
    const answer = new Promise((resolve, reject) => this.#questions.push({ resolve, reject }));
    this.#add({ verb, number: this.#array[NUMBER], outer: this.#array[COUNT], given, asks: true });
    this.#keepPort();
    return answer;
  }

  /** Adds a call to the message at the end of this turn. */
  #add(call) {
    this.#array[COUNT] = 0;
    this.#array[MORE] = 0;
    if (this.#calls.push(call) > 1) return;
    // A tick that is requested in a promise job runs after the last promise job.
    queueMicrotask(() => nextTick(() => {
      this.#port.postMessage(this.#calls);
      this.#calls = [];
      this.#keepPort();
    }));
  }

  /** Takes the mail for which there is room in the array. */
  take() {
    const room = Math.floor((this.#array.length - MAIL) / MAIL_LENGTH) * MAIL_LENGTH;
    const taken = this.#mail.splice(0, room);
    this.#array.set(taken, MAIL);
    this.#array[COUNT] = taken.length / MAIL_LENGTH;
    this.#array[MORE] = this.#mail.length > 0 ? 1 : 0;
  }

  keepAlive(keep) {
    this.#keeps = Boolean(keep);
    this.#keepPort();
  }

  #keepPort() {
    if (this.#isClosing && this.#questions.length === 0 && this.#calls.length === 0) this.#port.close();
    if (this.#keeps || this.#questions.length > 0) this.#port.ref();
    else this.#port.unref();
  }

  /** Closes the port after the last answer. */
  close() {
    this.#isClosing = true;
    this.#keepPort();
  }
}

/**
 * Returns the engine of the main thread. A handle is a client; answers are promises, and a release
 * is true: a loss comes as mail.
 */
export function reach(version) {
  return {
    open(partition, clientId, array, wake, refuse) {
      return new Client({ version, partition, clientId }, array, wake, refuse);
    },
    close: (client) => client.close(),
    request(client, ...given) {
      client.send('request', ...given);
      return 0;
    },
    /** The number of the outer lock stands in the array instead of the count of mail. */
    requestWithin: (client, ...given) => client.ask('requestWithin', ...given),
    release: (client) => client.send('release'),
    cancel: (client) => client.send('cancel'),
    expire: (client) => client.send('expire'),
    downgrade: (client, limit) => client.ask('downgrade', limit),
    forceRelease: (client, name) => client.ask('forceRelease', name),
    watchContention: (client) => client.send('watchContention'),
    take: (client) => client.take(),
    subscribe: (client, capacity) => client.send('subscribe', capacity),
    takeEvents: (client) => client.ask('takeEvents'),
    query: (client) => client.ask('query'),
    blockers: (client, serial) => client.ask('blockers', serial),
    deadlocks: (client) => client.ask('deadlocks'),
    census: (client) => client.ask('census'),
    keepAlive: (client, keep) => client.keepAlive(keep),
    /** Resolves after the effects of all earlier calls. */
    settle: (client) => client.ask('take', 0),
  };
}
