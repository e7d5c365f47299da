// The limits of a service, as its welcome has them. The client refuses what exceeds one itself: the
// service would refuse it too, or end the session.

import { bytesBeyond } from './wire.js';

/** Characters of a name in an error. */
const SHOWN_MAX = 40;

export class Limits {
  /** The member `limits` of the latest welcome. */
  announced = {};

  /** Returns why no client may be opened beside so many others, if so. */
  ofClients(count) {
    const max = this.#max('clients-per-session');
    return count < max ? undefined : fault(`the connection has ${count} clients, and the service takes ${max}: end some`);
  }

  /** Returns why a request may not be sent beside so many others, if so. */
  ofRequest({ scope, tag = '' }, text, count) {
    const max = this.#max('requests-per-session');
    if (count >= max) return fault(`the connection has ${count} requests, and the service takes ${max}: release locks first`);
    const tagMax = this.#max('tag-bytes');
    const tagBytes = bytesBeyond(tag, tagMax);
    if (tagBytes !== undefined) return fault(`the tag has ${tagBytes} bytes, and the service takes ${tagMax}: use a shorter one`);
    return this.#ofNames(typeof scope === 'string' ? [scope] : scope) ?? this.ofMessage(text);
  }

  #ofNames(names) {
    const countMax = this.#max('names-per-request');
    if (names.length > countMax) return fault(`a request of ${names.length} names, and the service takes ${countMax}: request fewer names`);
    const max = this.#max('name-bytes');
    for (let index = 0; index < names.length; index++) {
      const name = names[index];
      const bytes = bytesBeyond(name, max);
      if (bytes !== undefined) return fault(`the name '${shortened(name)}' has ${bytes} bytes, and the service takes ${max}: use a shorter one`);
    }
    return undefined;
  }

  /** Returns why a message may not be sent, if so. */
  ofMessage(text) {
    const max = this.#max('message-bytes');
    const bytes = bytesBeyond(text, max);
    return bytes && fault(`this takes a message of ${bytes} bytes, and the service takes ${max}: use shorter names`);
  }

  #max(limit) {
    return this.announced[`${limit}-max`] ?? Infinity;
  }
}

/** Returns the start of a name, for a sentence. */
function shortened(name) {
  return name.length > SHOWN_MAX ? `${name.slice(0, SHOWN_MAX)}…` : name;
}

function fault(message) {
  return { code: 'limit', message };
}
