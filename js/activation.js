// The moment from which a page is seen by somebody. A browser may load and run it earlier: it is prerendering then, may never
// be seen, and is to be noticed by nobody else.
// https://wicg.github.io/nav-speculation/prerendering.html

import { append, each } from './lists.js';

export class Activation {
  #document;
  /** What is to be done then, in order. */
  #steps = [];

  constructor(realm) {
    const { document, setTimeout } = realm;
    this.#document = document;
    if (!this.isAwaited) return;
    const begin = () => {
      // The steps come after the event: this listener is added when that is on its way, behind all others.
      document.addEventListener('prerenderingchange', this.#activate, { once: true });
      // Another one may stop the event.
      setTimeout(this.#activate);
    };
    realm.addEventListener('prerenderingchange', begin, { once: true, capture: true });
  }

  get isAwaited() {
    return this.#document?.prerendering === true;
  }

  /** Takes the step when the page is active: now, if it is. */
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
