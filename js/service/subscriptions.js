// The event streams of a session's clients, and the messages that subscribe to them.

import { KeptMap } from '../internal/collections.js';
import { append, each, removed } from '../internal/lists.js';
import { eventOf, write } from './wire.js';

export class Subscriptions {
  /**
   * { streams, sent, answered } by the number of the client. A stream gets events after the answer
   * to its subscription: earlier events precede the stream.
   */
  #clients = new KeptMap();

  /** Adds a stream. Returns the message for the service. */
  add(client, stream) {
    if (!this.#clients.has(client)) this.#clients.set(client, { streams: [], sent: 0, answered: 0 });
    const subscription = this.#clients.get(client);
    append(subscription.streams, { stream, begins: ++subscription.sent });
    return write.watch({ events: client });
  }

  /** Removes a stream. Returns the message for the service if it was the client's last. */
  remove(client, stream) {
    const subscription = this.#clients.get(client);
    if (subscription === undefined) return undefined;
    subscription.streams = removed(subscription.streams, (known) => known.stream === stream);
    return subscription.streams.length === 0 ? write.watch({ 'no-events': client }) : undefined;
  }

  /** Adds the clients with a stream to a set, and forgets all others. */
  addClients(found) {
    this.#clients.forEach(({ streams }, client) => {
      if (streams.length > 0) found.add(client);
      else if (client !== 0 && !found.has(client)) this.#clients.delete(client);
    });
  }

  /** Notes that the service answered a subscription. Answers come in order. */
  answered(client) {
    const subscription = this.#clients.get(client);
    if (subscription !== undefined && subscription.answered < subscription.sent) subscription.answered++;
  }

  /** The service refused a subscription: its streams end with the error. */
  refused(client, error) {
    this.answered(client);
    const subscription = this.#clients.get(client);
    if (subscription === undefined) return;
    const { streams, answered } = subscription;
    subscription.streams = removed(streams, ({ begins }) => begins <= answered);
    each(streams, ({ stream, begins }) => {
      if (begins <= answered) stream.fail(error);
    });
  }

  event(body, time) {
    const subscription = this.#clients.get(body.client);
    if (subscription === undefined) return;
    const event = eventOf(body, time);
    each(subscription.streams, ({ stream, begins }) => {
      if (begins <= subscription.answered) stream.push(event);
    });
  }

  /** Adds a gap to the streams after a reconnect. Returns the messages for the service. */
  repeated() {
    const texts = [];
    this.#clients.forEach((subscription, client) => {
      const { streams, answered } = subscription;
      each(streams, (known) => {
        const hasBegun = known.begins <= answered;
        known.begins = hasBegun ? 0 : 1;
        if (hasBegun) known.stream.pushGap(undefined);
      });
      subscription.answered = 0;
      subscription.sent = streams.length === 0 ? 0 : 1;
      if (streams.length > 0) append(texts, write.watch({ events: client }));
    });
    return texts;
  }

  /** Ends all streams, with `error` unless the program closed the connection. */
  end(error) {
    this.#clients.forEach(({ streams }) => {
      each(streams, ({ stream }) => (error === undefined ? stream.end() : stream.fail(error)));
    });
    this.#clients.clear();
  }
}
