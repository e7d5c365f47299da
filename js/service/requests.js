// The requests and locks of a session's clients.

import { KeptMap } from '../internal/collections.js';
import { append, dropFirst, each } from '../internal/lists.js';
import { earliestGrant, holdDeadline, Holds } from './requests/holds.js';
import { describeFault, UNKNOWN_OUTCOME } from './refusals.js';
import { Steals } from './requests/steals.js';
import { sharingOf, write } from './wire.js';

// The stages of a request.
const PENDING = 0;
/** Granted, and not delivered yet: if the session ends first, the request is pending again. */
const GRANTED = 1;
const HELD = 2;
const OVER = 3;

// The deliveries to entries.
const deliverUnavailable = (entry) => entry.unavailable();
const deliverContended = (entry) => entry.contended();
const deliverLost = (entry, cause) => entry.lost(cause);
const deliverAborted = (entry, cause) => entry.aborted(cause);
const deliverRefused = (entry, refusal) => entry.refused(refusal);

export class Requests {
  /**
   * { id, client, entry, stage, token, place, isSent, since, downgrades, thief } by number, in
   * request order. A `thief` is the pending steal whose outcome a grant waits for, or 0.
   */
  #known = new KeptMap();
  /** The locks with a maximum hold. */
  holds = new Holds();
  #next = 1;
  #pending = 0;
  #steals = new Steals();
  /** Granted requests by the pending steal that takes them: delivered with its outcome. */
  #crossing = new KeptMap();
  #limits;
  #output;

  constructor(limits, output) {
    this.#limits = limits;
    this.#output = output;
  }

  /** The number of requests and locks. */
  get size() {
    return this.#known.size;
  }

  /** The number of pending requests. */
  get pending() {
    return this.#pending;
  }

  // ---- calls of clients

  /**
   * Adds a request. Returns its message; undefined if the client refuses it.
   *
   * @param isSent whether the message is sent now
   */
  add(client, entry, isSent, now) {
    const text = write.request(this.#next, client, entry);
    const fault = this.#limits.ofRequest(entry, text, this.size);
    if (fault !== undefined) {
      this.refuse(entry, describeFault(fault));
      return undefined;
    }
    const id = this.#next++;
    entry.id = id;
    const request = { id, client, entry, stage: PENDING, token: 0, place: undefined, isSent, since: now, downgrades: [], thief: 0 };
    if (entry.steal) this.#steals.add(request);
    this.#known.set(id, request);
    this.#wait(1);
    return text;
  }

  /** Removes a lock. False if it is lost all the same, undefined if it is unknown. */
  release({ id }) {
    const request = this.#known.get(id);
    if (request === undefined) return undefined;
    this.#known.delete(id);
    this.holds.end(id);
    endDowngrades(request);
    // The service receives a pending steal of the same client before this release.
    const isStolen = this.#steals.thiefOf(request) > 0;
    if (isStolen) this.#lose(request.entry, 'Stolen');
    return !isStolen;
  }

  /** Removes a request. False if there is nothing to abort. */
  abort({ id }) {
    const request = this.#known.get(id);
    if (request === undefined) return false;
    this.#forget(request);
    request.stage = OVER;
    return true;
  }

  /**
   * Returns the message that gives a lock a mode that allows more holders; undefined if there is
   * nothing to send. `resolve` gets whether there can be such a downgrade.
   */
  downgrade({ id, mode, limit }, sharing, resolve) {
    const request = this.#known.get(id);
    if (request === undefined) {
      resolve(true);
      return undefined;
    }
    const earlier = newest(request) ?? { mode, limit };
    if (holdersOf(sharing) < holdersOf(earlier)) {
      resolve(false);
      return undefined;
    }
    append(request.downgrades, { sharing, resolve });
    return write.downgrade(id, sharing);
  }

  /** Returns the message that watches a lock for contention; undefined if it is no longer held. */
  watchContention({ id }) {
    return this.#known.has(id) ? write.watch({ contention: id }) : undefined;
  }

  /** Adds the clients of all requests and locks to a set. */
  addClients(found) {
    this.#known.forEach(({ client }) => found.add(client));
  }

  /** Delivers a refusal to an entry. */
  refuse(entry, refusal) {
    this.#output.deliver(deliverRefused, entry, refusal);
  }

  // ---- messages of the service

  granted({ id, token, 'waited-ms': waited = 0 }, isFar, now) {
    const request = this.#pendingOf(id);
    if (request === undefined) return;
    this.#wait(-1);
    request.stage = GRANTED;
    request.token = token;
    const { maxHold } = request.entry;
    request.since = maxHold === undefined ? now : Math.min(earliestGrant(request.since, waited, isFar), now);
    if (maxHold !== undefined) this.holds.begin(id, holdDeadline(request.since, maxHold, isFar));
    this.#endSteal(request);
    this.#passGrant(request);
  }

  /** Notes the place of a pending request in its queue, for a claim. */
  placed({ id, place }) {
    const request = this.#pendingOf(id);
    if (request !== undefined) request.place = place;
  }

  downgraded({ id, mode }) {
    const request = this.#known.get(id);
    const holders = holdersOf(sharingOf(mode));
    while (request !== undefined && holdersOf(request.downgrades[0]?.sharing) <= holders) answerFirst(request);
  }

  contended(id) {
    const request = this.#known.get(id);
    if (request !== undefined) this.#output.deliver(deliverContended, request.entry);
  }

  unavailable(id) {
    const request = this.#pendingOf(id);
    if (request === undefined) return;
    this.#forget(request);
    this.#output.deliver(deliverUnavailable, request.entry);
  }

  refused(id, { fault, cycle }) {
    const request = this.#pendingOf(id);
    if (request === undefined) return;
    this.#forget(request);
    this.refuse(request.entry, describeFault(fault, cycle));
  }

  /** Removes a lost lock or request. False if it is unknown. */
  lost(id, cause, thief) {
    const request = this.#known.get(id);
    if (request === undefined) return false;
    const { entry, stage } = request;
    if (request.thief > 0) this.#output.deliver(this.#deliverGranted, request, request.token);
    const { downgrades } = request;
    request.downgrades = [];
    this.#forget(request);
    entry.thief = thief;
    if (stage === PENDING) this.#output.deliver(deliverAborted, entry, cause);
    else this.#lose(entry, cause);
    endDowngrades({ downgrades });
    return true;
  }

  /** Loses the locks that were held for as long as they may be. Returns their numbers. */
  expire(now) {
    const ended = [];
    for (let id = this.holds.due(now); id !== undefined; id = this.holds.due(now)) {
      append(ended, id);
      this.lost(id, 'HeldTooLong');
    }
    return ended;
  }

  // ---- the end of a connection or of a session

  /**
   * Loses all held locks, and keeps pending requests for the next session. A sent steal fails: the
   * service may have done it, and another client may hold the lock.
   */
  lapse(cause) {
    this.#known.forEach((request) => {
      request.place = undefined;
      this.holds.end(request.id);
      if (request.stage === HELD) {
        this.#known.delete(request.id);
        this.#lose(request.entry, cause);
        endDowngrades(request);
      } else if (request.isSent && request.entry.steal && cause !== 'ClientEnded') {
        this.#doubt(request);
      } else if (request.stage === GRANTED) {
        request.stage = PENDING;
        request.thief = 0;
        this.#wait(1);
      }
    });
  }

  /**
   * Fails the steals that the earlier owner of a cluster's locks may have done: the new owner does
   * not know, and would steal from a later holder.
   */
  endStealsInDoubt() {
    this.#known.forEach((request) => {
      if (request.stage === PENDING && request.isSent && request.entry.steal) this.#doubt(request);
    });
  }

  /**
   * Ends all pending requests: aborted if there is a cause, refused otherwise. Returns their
   * numbers.
   */
  end(refusal, cause) {
    const ended = [];
    this.#known.forEach((request) => {
      if (request.stage !== PENDING) return;
      this.#forget(request);
      append(ended, request.id);
      if (cause === undefined) this.refuse(request.entry, refusal);
      else this.#output.deliver(deliverAborted, request.entry, cause);
    });
    return ended;
  }

  /** Returns the claim of a resumed session. A lock with an oversized message is lost. */
  claimed(now) {
    return this.#repeated((request) => {
      // The service counts the wait of a request that is new to it from the age in the claim.
      if (!request.isSent) request.since = now;
      const { stage, token, place, since, downgrades } = request;
      const ms = Math.max(Math.floor(now - since), 0);
      return stage === PENDING ? { place, ms } : { token, ms, sharing: newest({ downgrades }) };
    });
  }

  /** Returns the messages of downgrades without an answer, for a claim. */
  downgrades() {
    const texts = [];
    this.#known.forEach((request) => {
      const sharing = newest(request);
      if (sharing !== undefined) append(texts, write.downgrade(request.id, sharing));
    });
    return texts;
  }

  /** Returns the messages of pending requests, for a new session. */
  repeated(now) {
    return this.#repeated((request) => {
      request.since = now;
      return request.stage === PENDING ? {} : undefined;
    });
  }

  /** Returns the messages of all requests, with the further members that a function returns. */
  #repeated(describe) {
    const texts = [];
    this.#known.forEach((request) => {
      const { id, client, entry, stage, isSent } = request;
      const more = describe(request);
      if (more === undefined) return;
      const text = write.request(id, client, entry, more);
      // A service has checked what it was sent before, and may be another one now.
      const fault = isSent ? this.#limits.ofMessage(text) : this.#limits.ofRequest(entry, text, texts.length);
      request.isSent ||= fault === undefined;
      if (fault === undefined) append(texts, text);
      else if (stage === PENDING) this.refused(id, { fault });
      else this.lost(id, 'ServiceGone');
    });
    return texts;
  }

  /** Returns the messages for watched locks. */
  watched() {
    const texts = [];
    this.#known.forEach(({ id, entry, stage }) => {
      if (stage === HELD && entry.watchesContention) append(texts, write.watch({ contention: id }));
    });
    return texts;
  }

  #deliverGranted = (request, token) => {
    // The lease may have ended while the process was stopped.
    this.#output.check();
    if (request.stage !== GRANTED || request.token !== token) return;
    request.stage = HELD;
    request.entry.granted(token);
  };

  /**
   * Delivers a grant, unless a pending steal of the same client takes the lock: the service granted
   * this before it received the steal, so the loss may follow.
   */
  #passGrant(request) {
    const thief = (request.thief = this.#steals.thiefOf(request));
    if (thief === 0) this.#output.deliver(this.#deliverGranted, request, request.token);
    else if (this.#crossing.has(thief)) append(this.#crossing.get(thief), request);
    else this.#crossing.set(thief, [request]);
  }

  /** Notes the outcome of a steal: grants that waited for it are delivered. */
  #endSteal(steal) {
    if (!steal.entry.steal || !this.#steals.delete(steal)) return;
    const crossing = this.#crossing.get(steal.id) ?? [];
    this.#crossing.delete(steal.id);
    each(crossing, (request) => request.thief === steal.id && this.#passGrant(request));
  }

  /** Fails a steal that the service may have done. */
  #doubt(request) {
    this.#forget(request);
    request.stage = OVER;
    this.refuse(request.entry, describeFault(UNKNOWN_OUTCOME));
  }

  #lose(entry, cause) {
    entry.loss = cause;
    this.#output.deliver(deliverLost, entry, cause);
  }

  #pendingOf(id) {
    const request = this.#known.get(id);
    return request?.stage === PENDING ? request : undefined;
  }

  #forget(request) {
    this.#known.delete(request.id);
    this.holds.end(request.id);
    request.thief = 0;
    this.#endSteal(request);
    endDowngrades(request);
    if (request.stage === PENDING) this.#wait(-1);
  }

  #wait(more) {
    this.#pending += more;
    this.#output.wait(more);
  }
}

/** Returns how many holders a mode allows; NaN without a mode. */
function holdersOf({ mode, limit = mode === 'shared' ? Infinity : 1 } = { limit: NaN }) {
  return limit;
}

/** Returns the mode of the last downgrade without an answer, if there is one. */
function newest({ downgrades }) {
  return downgrades[downgrades.length - 1]?.sharing;
}

function answerFirst({ downgrades }) {
  const { resolve } = downgrades[0];
  dropFirst(downgrades, 1);
  resolve(true);
}

/** Ends the downgrades of a lock that is over: each finds out how. */
function endDowngrades({ downgrades }) {
  while (downgrades.length > 0) answerFirst({ downgrades });
}
