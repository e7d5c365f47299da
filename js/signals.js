// Abort signals: one listener for each signal, however many requests wait on it.

import { KeptSet, KeptWeakMap } from './collections.js';

const watches = new KeptWeakMap();

/** All requests that one signal can abort, in the order they were made. */
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

  /** The algorithm of a request leaves the signal; with the last one the listener does. */
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

/** How an abort is heard of where the platform offers nothing better: by a signal of our own, whose event nobody else can stop. */
export function listenForAbort(signal, algorithm) {
  const heard = AbortSignal.any?.([signal]) ?? signal;
  heard.addEventListener('abort', algorithm, { once: true });
  return () => heard.removeEventListener('abort', algorithm);
}
