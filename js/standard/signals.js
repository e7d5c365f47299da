// Abort signals: one listener for each signal, for any number of requests.

import { KeptSet, KeptWeakMap } from '../internal/collections.js';

const watches = new KeptWeakMap();

/** The requests that one signal can abort, in request order. */
class Watch {
  #requests = new KeptSet();
  #stop;

  constructor(signal, listen) {
    this.#stop = listen(signal, () => {
      watches.delete(signal);
      const requests = this.#requests;
      this.#requests = new KeptSet();
      requests.forEach((request) => request.cancel(signal.reason));
    });
  }

  add(request) {
    this.#requests.add(request);
  }

  /** Removes a request, and the listener with the last one. */
  remove(signal, request) {
    if (this.#requests.delete(request) && this.#requests.size === 0) {
      this.#stop();
      if (watches.get(signal) === this) watches.delete(signal);
    }
  }
}

/**
 * Calls `request.cancel(reason)` when the signal aborts.
 * https://dom.spec.whatwg.org/#abortsignal-add
 */
export function addAbortAlgorithm(signal, request, listen) {
  let watch = watches.get(signal);
  if (watch === undefined) {
    watch = new Watch(signal, listen);
    watches.set(signal, watch);
  }
  watch.add(request);
  return watch;
}

/** Adds an abort listener to a dependent signal, whose event other listeners cannot stop. */
export function listenForAbort(signal, algorithm) {
  const dependent = AbortSignal.any?.(sequenceOf(signal)) ?? signal;
  dependent.addEventListener('abort', algorithm, { once: true });
  return () => dependent.removeEventListener('abort', algorithm);
}

/**
 * Returns an array of one value with an iterator of its own: WebIDL reads a sequence by its
 * iterator, and the page may replace that of arrays. Node takes arrays alone.
 */
function sequenceOf(value) {
  const sequence = [value];
  const iterator = () => {
    let index = 0;
    return { next: () => (index++ === 0 ? { value, done: false } : { value: undefined, done: true }) };
  };
  return Object.defineProperty(sequence, Symbol.iterator, { value: iterator });
}
