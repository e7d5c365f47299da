// The activation of a prerendering page. Before it, the page may still be discarded, so it must not
// affect other clients.
// https://wicg.github.io/nav-speculation/prerendering.html

import { append, each } from '../internal/lists.js';

export class Activation {
  #document;
  /** Functions to call at the activation, in order. */
  #steps = [];

  constructor(realm) {
    const { document, setTimeout } = realm;
    this.#document = document;
    if (!this.isAwaited) return;
    const begin = () => {
      // Added while the event is dispatched, so that it runs after all other listeners.
      document.addEventListener('prerenderingchange', this.#activate, { once: true });
      // Another listener may stop the event.
      setTimeout(this.#activate);
    };
    realm.addEventListener('prerenderingchange', begin, { once: true, capture: true });
  }

  get isAwaited() {
    return this.#document?.prerendering === true;
  }

  /** Calls `step` when the page is active: now, if it is. */
  run(step) {
    if (this.isAwaited) append(this.#steps, step);
    else step();
  }

  #activate = () => {
    const steps = this.#steps;
    this.#steps = [];
    each(steps, (step) => step());
  };
}
