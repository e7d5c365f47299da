// The messages of a service after its welcome, and what each changes.

import { describeFault } from './refusals.js';
import { causeOf, write } from './wire.js';

/** Handlers by the word of a message. They get the machine's parts, the body and the moment. */
const HANDLERS = {
  __proto__: null,
  granted: ({ requests }, body, now) => requests.granted(body, now),
  pending: ({ requests }, body) => requests.placed(body),
  unavailable: ({ requests }, id) => requests.unavailable(id),
  refused: ({ requests }, body) => requests.refused(body),
  contended: ({ requests }, id) => requests.contended(id),
  downgraded: ({ requests }, body) => requests.downgraded(body),
  lost({ requests, send }, { id, cause, thief }) {
    // Until the release the service remembers the loss.
    if (requests.lost(id, causeOf(cause), thief)) send(write.release(id));
  },
  answer: ({ queries }, body) => queries.answered(body),
  listening: ({ subscriptions }, client) => subscriptions.answered(client),
  'not-listening': ({ subscriptions, output }, { client, fault }) => subscriptions.refused(client, output.error(describeFault(fault))),
  event: ({ subscriptions, output }, body) => subscriptions.event(body, output.time()),
  pong: ({ session }, number) => session.lease?.pong(number),
  error: ({ over }, fault, now) => over(fault, now),
};

/** Handles a message. A client ignores words that it does not know. */
export function receive(parts, { word, body }, now) {
  HANDLERS[word]?.(parts, body, now);
}
