// The requests, locks and queries of a session's clients.

import { KeptMap, KeptSet } from './collections.js';
import { append, includes, some } from './lists.js';
import { refusalOf } from './refusals.js';
import { bytesBeyond, write } from './wire.js';

// Read now: a page may replace it.
const { now } = Date;

// The stages of a request.
const PENDING = 0;
/** Granted, and not delivered yet: if the session ends first, the request is pending again. */
const GRANTED = 1;
const HELD = 2;
const OVER = 3;

/** The failure of an effect that must not be repeated, because the service may have done it. */
const UNKNOWN_OUTCOME = {
  code: 'unknown-outcome',
  message: 'the connection to the lock service broke before its answer, and the outcome is not known: query the locks before another attempt',
};

export class Wants {
  /** { id, client, entry, stage, token, place, isSent, since } by number, in request order. */
  #requests = new KeptMap();
  #nextRequest = 1;
  /** The pending requests that steal. */
  #thieves = new KeptSet();
  /** Granted requests that a pending steal of the same client takes: delivered with its outcome. */
  #doubted = new KeptSet();
  /** { id, client, question, isSent, resolve, reject } by number. */
  #questions = new KeptMap();
  #nextQuestion = 1;
  #waiting = 0;
  #limits = {};
  #platform;
  #check;

  /** @param check ends all locks if the lease has ended */
  constructor(platform, check) {
    this.#platform = platform;
    this.#check = check;
  }

  /** The limits of the service: it ends the session of a client that exceeds them. */
  set limits(limits) {
    this.#limits = limits;
  }

  // ---- calls of clients

  /**
   * Adds a request. Returns its message; undefined if the request is refused here.
   *
   * @param isSent whether the message is sent now
   */
  request(client, entry, isSent) {
    const text = write.request(this.#nextRequest, client, entry);
    const fault = this.#tooLong(text);
    if (fault !== undefined) {
      this.refuse(entry, { ...this.#describe(fault), name: 'NotSupportedError' });
      return undefined;
    }
    const id = this.#nextRequest++;
    entry.id = id;
    const request = { id, client, entry, stage: PENDING, token: 0, place: undefined, isSent, since: now() };
    if (entry.steal) this.#thieves.add(request);
    this.#requests.set(id, request);
    this.wait(1);
    return text;
  }

  /** Removes a lock. False if it is lost all the same, undefined if it is unknown. */
  release({ id }) {
    const request = this.#requests.get(id);
    if (request === undefined) return undefined;
    this.#requests.delete(id);
    // The service receives a pending steal of the same client before this release.
    const isStolen = this.#isStolen(request);
    if (isStolen) this.#lose(request.entry, 'Stolen');
    return !isStolen;
  }

  /** Whether a pending steal of the same client takes this lock, unless it fails. */
  #isStolen(request) {
    let isStolen = false;
    this.#thieves.forEach((thief) => (isStolen ||= steals(thief, request)));
    return isStolen;
  }

  /** Returns the message that watches a lock for contention; undefined if it is no longer held. */
  watchContention({ id }) {
    return this.#requests.has(id) ? write.contention(id) : undefined;
  }

  /** Adds the clients of all requests, locks and queries to a set. */
  addClients(found) {
    this.#requests.forEach(({ client }) => found.add(client));
    this.#questions.forEach(({ client }) => found.add(client));
  }

  /** Removes a request. False if there is nothing to abort. */
  abort({ id }) {
    const request = this.#requests.get(id);
    if (request === undefined) return false;
    this.#forget(request);
    request.stage = OVER;
    return true;
  }

  /** Delivers a refusal to an entry. */
  refuse(entry, refusal) {
    this.#deliver(deliverRefused, entry, refusal);
  }

  /** Adds a query, as request() adds a request. */
  ask(client, question, isSent, resolve, reject) {
    const text = write.ask(this.#nextQuestion, client, question);
    const fault = this.#tooLong(text);
    if (fault !== undefined) {
      reject(this.#error(fault));
      return undefined;
    }
    const id = this.#nextQuestion++;
    this.#questions.set(id, { id, client, question, isSent, resolve, reject });
    this.wait(1);
    return text;
  }

  // ---- messages of the service

  granted({ id, token }) {
    const request = this.#pending(id);
    if (request === undefined) return;
    this.wait(-1);
    request.stage = GRANTED;
    request.token = token;
    request.since = now();
    this.#endSteal(request);
    // The service granted this before it received the steal, so the loss will follow.
    if (this.#isStolen(request)) this.#doubted.add(request);
    else this.#deliver(this.#deliverGranted, request, token);
  }

  /** Notes the outcome of a steal: grants that it does not take are delivered. */
  #endSteal(request) {
    if (!this.#thieves.delete(request)) return;
    this.#doubted.forEach((granted) => {
      if (!this.#isStolen(granted)) this.#deliverDoubted(granted);
    });
  }

  #deliverDoubted(request) {
    if (this.#doubted.delete(request)) this.#deliver(this.#deliverGranted, request, request.token);
  }

  /** Notes the place of a pending request in its queue, for a claim. */
  placed({ id, place }) {
    const request = this.#pending(id);
    if (request !== undefined) request.place = place;
  }

  contended(id) {
    const request = this.#requests.get(id);
    if (request !== undefined) this.#deliver(deliverContended, request.entry);
  }

  unavailable(id) {
    const request = this.#pending(id);
    if (request === undefined) return;
    this.#forget(request);
    this.#deliver(deliverUnavailable, request.entry);
  }

  refused(id, fault, cycle) {
    const request = this.#pending(id);
    if (request === undefined) return;
    this.#forget(request);
    const { entry } = request;
    const refusal = this.#describe(fault, cycle);
    // Another attempt cannot succeed with these names.
    if (fault.code === 'limit' && this.#exceedsLimits(entry.scope)) refusal.name = 'NotSupportedError';
    this.refuse(entry, refusal);
  }

  /** Removes a lost lock or request. False if it is unknown. */
  lost(id, cause, thief) {
    const request = this.#requests.get(id);
    if (request === undefined) return false;
    const { entry, stage } = request;
    this.#deliverDoubted(request);
    this.#forget(request);
    entry.thief = thief;
    if (stage === PENDING) this.#deliver(deliverAborted, entry, cause);
    else this.#lose(entry, cause);
    return true;
  }

  answered({ id, reply }) {
    const question = this.#takeQuestion(id);
    if (question === undefined) return;
    const { refused } = reply;
    if (refused === undefined) this.#deliver(question.resolve, reply);
    else this.#deliver(question.reject, this.#error(refused));
  }

  // ---- the end of a session

  /**
   * Loses all held locks, and keeps pending requests for the next session. A steal fails: the
   * service may have done it, and another client may hold the lock.
   */
  lapse(cause) {
    this.#requests.forEach((request) => {
      request.place = undefined;
      if (request.stage === HELD) {
        this.#requests.delete(request.id);
        this.#lose(request.entry, cause);
      } else if (request.isSent && request.entry.steal && cause !== 'ClientEnded') {
        this.#forget(request);
        request.stage = OVER;
        this.refuse(request.entry, this.#describe(UNKNOWN_OUTCOME));
      } else if (request.stage === GRANTED) {
        request.stage = PENDING;
        this.#doubted.delete(request);
        this.wait(1);
      }
    });
  }

  /** Fails the queries that must not be sent twice, because the connection broke. */
  disconnected() {
    this.#questions.forEach((question) => {
      if (isInDoubt(question)) this.#deliver(this.#takeQuestion(question.id).reject, this.#error(UNKNOWN_OUTCOME));
    });
  }

  /**
   * Ends all pending requests and queries: aborted if there is a cause, refused otherwise. Returns
   * the numbers of these requests.
   */
  end(refusal, error, cause) {
    const ended = [];
    this.#requests.forEach((request) => {
      if (request.stage !== PENDING) return;
      this.#forget(request);
      append(ended, request.id);
      if (cause === undefined) this.refuse(request.entry, refusal);
      else this.#deliver(deliverAborted, request.entry, cause);
    });
    this.disconnected();
    this.#questions.forEach(({ id }) => this.#deliver(this.#takeQuestion(id).reject, error));
    return ended;
  }

  /** Whether a lock, a request or a query needs the service. */
  get isNeeded() {
    return this.#requests.size > 0 || this.#questions.size > 0;
  }

  /** Whether a client waits for an answer of the service. */
  get isWaiting() {
    return this.#waiting > 0;
  }

  /** Returns the claim of a resumed session. A lock that exceeds the message limit is lost. */
  claim() {
    const texts = [];
    this.#requests.forEach((request) => {
      const { id, client, entry, stage, token, place, since } = request;
      const isHeld = stage !== PENDING;
      const ms = Math.max(now() - since, 0);
      const text = write.request(id, client, entry, isHeld ? { token, ms } : { place, ms });
      const fault = this.#tooLong(text);
      request.isSent ||= fault === undefined;
      if (fault === undefined) append(texts, text);
      else if (isHeld) this.lost(id, 'ServiceGone');
      else this.refused(id, fault);
    });
    append(texts, write.claimed);
    return texts;
  }

  /** Returns the messages of unanswered requests. One that exceeds the message limit fails. */
  unanswered() {
    const texts = [];
    this.#requests.forEach((request) => {
      const { id, client, entry, stage } = request;
      if (stage !== PENDING) return;
      const text = write.request(id, client, entry);
      const fault = this.#tooLong(text);
      request.isSent ||= fault === undefined;
      if (fault === undefined) append(texts, text);
      else this.refused(id, fault);
    });
    return texts;
  }

  /** Returns the messages for watched locks and unanswered queries. */
  questions() {
    const texts = [];
    this.#requests.forEach(({ id, entry, stage }) => {
      if (stage === HELD && entry.watchesContention) append(texts, write.contention(id));
    });
    this.#questions.forEach((asked) => {
      const { id, client, question } = asked;
      const text = write.ask(id, client, question);
      asked.isSent = true;
      const refused = this.#tooLong(text);
      if (refused === undefined) append(texts, text);
      else this.answered({ id, reply: { refused } });
    });
    return texts;
  }

  /** Counts pending requests and queries, which keep the event loop alive. */
  wait(more) {
    const before = this.#waiting;
    this.#waiting = before + more;
    if ((before === 0) !== (this.#waiting === 0)) this.#platform.keepAlive?.(this.#waiting > 0);
  }

  #deliverGranted = (request, token) => {
    // The lease may have ended while the process was stopped.
    this.#check();
    if (request.stage !== GRANTED || request.token !== token) return;
    request.stage = HELD;
    request.entry.granted(token);
  };

  #lose(entry, cause) {
    entry.loss = cause;
    this.#deliver(deliverLost, entry, cause);
  }

  #pending(id) {
    const request = this.#requests.get(id);
    return request?.stage === PENDING ? request : undefined;
  }

  #forget(request) {
    this.#requests.delete(request.id);
    this.#doubted.delete(request);
    this.#endSteal(request);
    if (request.stage === PENDING) this.wait(-1);
  }

  #takeQuestion(id) {
    const question = this.#questions.get(id);
    if (this.#questions.delete(id)) this.wait(-1);
    return question;
  }

  #deliver(deliver, entry, value) {
    this.#platform.deliveries.add(deliver, entry, value);
  }

  #tooLong(text) {
    const max = this.#limits['message-bytes-max'] ?? Infinity;
    const bytes = bytesBeyond(text, max);
    if (bytes === undefined) return undefined;
    const message = `the request needs a message of ${bytes} bytes, and the service accepts ${max}: use shorter names`;
    return { code: 'limit', message };
  }

  #describe({ code, message }, cycle) {
    const cause = cycle === undefined ? code : { code, clients: cycle.clients, ids: cycle.requests };
    return { name: refusalOf(code).error, message, cause };
  }

  #error(fault) {
    const { name, message, cause } = this.#describe(fault);
    return this.#platform.exception(name, message, cause);
  }

  /** Returns whether the names of a scope exceed a limit. */
  #exceedsLimits(scope) {
    const names = typeof scope === 'string' ? [scope] : scope;
    const bytesMax = this.#limits['name-bytes-max'] ?? Infinity;
    return names.length > (this.#limits['names-per-request-max'] ?? Infinity) || some(names, (name) => bytesBeyond(name, bytesMax));
  }
}

/** Returns whether the service may have changed locks for a query without an answer. */
function isInDoubt({ question, isSent }) {
  return isSent && Object.hasOwn(question, 'force-release');
}

/** Returns whether a request steals the lock of an earlier request of the same client. */
function steals(thief, { id, client, entry }) {
  return thief.id > id && thief.client === client && intersect(thief.entry.scope, entry.scope);
}

function intersect(one, other) {
  if (typeof one === 'string') return typeof other === 'string' ? one === other : includes(other, one);
  return typeof other === 'string' ? includes(one, other) : some(one, (name) => includes(other, name));
}

function deliverUnavailable(entry) {
  entry.unavailable();
}

function deliverContended(entry) {
  entry.contended();
}

function deliverLost(entry, cause) {
  entry.lost(cause);
}

function deliverAborted(entry, cause) {
  entry.aborted(cause);
}

function deliverRefused(entry, refusal) {
  entry.refused(refusal);
}
