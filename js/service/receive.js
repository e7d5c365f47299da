// The messages of a service after its welcome, and what each changes.

import { describeFault } from './refusals.js';
import { causeOf, write } from './wire.js';

/** Handlers by the word of a message. They get the machine's parts, the body and the moment. */
const HANDLERS = {
  __proto__: null,
  granted: ({ requests, session }, body, now) => requests.granted(body, session.lease !== undefined, now),
  pending: ({ requests }, body) => requests.placed(body),
  downgraded: ({ requests }, body) => requests.downgraded(body),
  over({ requests, send }, { id, why: { lost, refused } }) {
    // Until the end of its request the service remembers the loss.
    if (lost !== undefined) {
      if (requests.lost(id, causeOf(lost.cause), lost.thief)) send(write.end(id));
    } else if (refused !== undefined) requests.refused(id, refused);
    else requests.unavailable(id);
  },
  event({ requests, subscriptions, output }, { request, watching, refused, contended }) {
    if (request !== undefined) subscriptions.event(request, output.time());
    else if (watching !== undefined) subscriptions.answered(watching);
    else if (refused !== undefined) subscriptions.refused(refused.client, output.error(describeFault(refused.fault)));
    else requests.contended(contended);
  },
  answer: ({ queries }, body) => queries.answered(body),
  pong: ({ session }, number) => session.lease?.pong(number),
  error: ({ over }, fault, now) => over(fault, now),
};

/** Handles a message. A client ignores words that it does not know. */
export function receive(parts, { word, body }, now) {
  HANDLERS[word]?.(parts, body, now);
}
