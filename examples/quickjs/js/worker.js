// Workers, which are threads, and the messages between them. Values cross as JSON.

import { addTask } from './tasks.js';

const { host } = globalThis;
const OWNER = 0;

/** Live workers by number. */
const workers = new Map();

export const hasWorkers = () => workers.size > 0;

globalThis.Worker = class Worker extends EventTarget {
  #number;

  /** @param files the scripts of the worker, in order */
  constructor(...files) {
    super();
    this.#number = host.startWorker(files.map(String));
    workers.set(this.#number, this);
  }

  postMessage(data) {
    host.post(this.#number, JSON.stringify({ data }));
  }

  terminate() {
    host.terminate(this.#number);
  }
};

/** Dispatches an event, and calls the handler of the property. */
function fire(target, type, more) {
  const event = Object.assign(new Event(type), more);
  target.dispatchEvent(event);
  target[`on${type}`]?.(event);
}

export function message(from, text) {
  const target = from === OWNER ? globalThis : workers.get(from);
  if (target !== undefined) addTask(() => fire(target, 'message', JSON.parse(text)));
}

export function ended(number, error) {
  const worker = workers.get(number);
  workers.delete(number);
  if (error === undefined || error === null) return;
  console.error(error);
  addTask(() => fire(worker, 'error', { message: error }));
}

if (host.isWorker) {
  globalThis.postMessage = (data) => host.post(OWNER, JSON.stringify({ data }));
}
