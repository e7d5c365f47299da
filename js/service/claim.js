// The messages of a client over a new connection: its proof of a session, and its whole state.

import { append, each } from '../internal/lists.js';
import { Lease } from './lease.js';
import { write } from './wire.js';

/** A session as the client knows it, from hello to hello. It outlives connections. */
export class KnownSession {
  /** Its number at the service; that of the last one while there is none. */
  number = 0;
  /** The largest epoch seen: a service with a smaller one has a successor. */
  epoch = 0;
  /** The web origin of the lock space, if any. */
  origin;
  lease;
  /** Whether the service is a cluster, where a session has one partition. */
  isCluster;
  /** Whether the service knows the message `timed-out`. */
  #takesTimeouts = false;
  /** The proof that the session belongs to this client, while it can be resumed. */
  #secret;
  /** The secret of the next session, from its first hello to a welcome. */
  #chosen;

  /** @param beside another session of the same cluster, if there is one */
  constructor(beside) {
    this.isCluster = beside !== undefined;
    this.origin = beside?.origin;
  }

  /** Whether another connection can resume it. */
  get isResumable() {
    return this.#secret !== undefined;
  }

  /** Returns the members of a hello: the proof of this session, or a secret of the next one. */
  hello(draw) {
    const resume = this.isResumable ? { session: this.number, secret: this.#secret, epoch: this.epoch } : undefined;
    if (resume === undefined) this.#chosen ??= draw?.();
    return { resume, secret: resume === undefined ? this.#chosen : undefined };
  }

  /** Takes the answer to a hello that was sent at this moment. */
  welcomed({ session, secret, epoch = 0, origin, cluster, 'timed-out': takesTimeouts, 'lease-ms': length }, sentAt) {
    this.number = session;
    this.epoch = epoch;
    this.origin = origin;
    this.isCluster = cluster === true;
    this.#takesTimeouts = takesTimeouts === true;
    this.lease = length === undefined ? undefined : new Lease(length, sentAt);
    this.#secret = secret || undefined;
    this.#chosen = undefined;
  }

  /** Returns the message that ends a request, for its timeout or not. */
  end(id, isTimeout) {
    return isTimeout && this.#takesTimeouts ? write.timedOut(id) : write.end(id);
  }

  /** Ends the session on the side of the client. */
  lapse() {
    // The next owner of a slot ends the session that had this secret, and does not wait for it.
    if (this.isCluster) this.#chosen = this.#secret ?? this.#chosen;
    this.#secret = undefined;
    this.lease = undefined;
  }
}

/**
 * Returns all that a service must know of a session. It ends what the claim of a resumed session
 * does not name.
 */
export function stateOf({ clients, requests, subscriptions, queries }, isResumed, now) {
  // The hello of a new session has opened client 0.
  const texts = clients.openFrom(isResumed ? 0 : 1);
  const add = (more) => each(more, (text) => append(texts, text));
  if (isResumed) {
    add(requests.claimed(now));
    append(texts, write.claimed);
    add(requests.downgrades());
  }
  add(subscriptions.repeated());
  if (!isResumed) add(requests.repeated(now));
  add(requests.watched());
  add(queries.repeated());
  return texts;
}
