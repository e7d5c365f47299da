// What the users of a session want and have: requests, locks and questions, and what becomes of them.

import { KeptMap, KeptSet } from './collections.js';
import { append, each, includes, plainList, some } from './lists.js';
import { refusalOf } from './refusals.js';
import { bytesBeyond, say } from './wire.js';

// How far a request has come.
const PENDING = 0;
/** Granted, and its entry is yet to hear of it: if the session ends first, it waits again. */
const GRANTED = 1;
const HELD = 2;
const OVER = 3;

export class Wants {
  /** Requests and locks, { id, client, entry, stage, token, place, doomed } by number, in the order of asking. */
  #requests = new KeptMap();
  #nextRequest = 1;
  /** Those of them that steal and have no answer yet. */
  #thieves = new KeptSet();
  /** { id, client, question, resolve, reject } by number. */
  #questions = new KeptMap();
  #nextQuestion = 1;
  #waiting = 0;
  #limits = {};
  #platform;
  #check;

  /** @param check ends the belief in all locks if it is time */
  constructor(platform, check) {
    this.#platform = platform;
    this.#check = check;
  }

  /** What the service takes. Whatever is longer would end the session. */
  set limits(limits) {
    this.#limits = limits;
  }

  // ---- what users do

  /** What is to be said of a new request; nothing if it is refused here and now. */
  request(client, entry) {
    const text = say.request(this.#nextRequest, client, entry);
    const fault = this.#tooLong(text);
    if (fault !== undefined) {
      this.refuse(entry, { ...this.#describe(fault), name: 'NotSupportedError' });
      return undefined;
    }
    const id = this.#nextRequest++;
    entry.id = id;
    const request = { id, client, entry, stage: PENDING, token: 0, place: undefined, doomed: false };
    if (entry.steal) {
      this.#thieves.add(request);
      this.#requests.forEach((other) => {
        if (other.stage !== PENDING && steals(request, other)) other.doomed = true;
      });
    }
    this.#requests.set(id, request);
    this.wait(1);
    return text;
  }

  /** False when there is nothing to release. */
  release({ id }) {
    const request = this.#requests.get(id);
    if (request === undefined) return false;
    // What a client steals from itself is lost from the moment it says so. The service will tell.
    if (request.doomed) {
      request.entry.loss = 'Stolen';
      return false;
    }
    this.#requests.delete(id);
    return true;
  }

  /**
   * Returns the messages for a lock whose holder watches for contention; nothing if it is held no
   * more.
   */
  watchContention({ id }) {
    return this.#requests.has(id) ? say.contention(id) : undefined;
  }

  /** False when there is nothing to take back. */
  abort({ id }) {
    const request = this.#requests.get(id);
    if (request === undefined) return false;
    this.#forget(request);
    request.stage = OVER;
    return true;
  }

  /** A request that comes to nothing before it is made. */
  refuse(entry, refusal) {
    this.#deliver(tellRefused, entry, refusal);
  }

  /** What is to be said of a new question; nothing if it is refused here and now. */
  ask(client, question, resolve, reject) {
    const text = say.ask(this.#nextQuestion, client, question);
    const fault = this.#tooLong(text);
    if (fault !== undefined) {
      reject(this.#error(fault));
      return undefined;
    }
    const id = this.#nextQuestion++;
    this.#questions.set(id, { id, client, question, resolve, reject });
    this.wait(1);
    return text;
  }

  // ---- what the service says

  granted({ id, token }) {
    const request = this.#pending(id);
    if (request === undefined) return;
    this.wait(-1);
    this.#thieves.delete(request);
    request.stage = GRANTED;
    request.token = token;
    // Granted before the service heard of a theft that was asked for later: the loss is on its way.
    this.#thieves.forEach((thief) => {
      if (!steals(thief, request)) return;
      request.doomed = true;
      request.entry.loss = 'Stolen';
    });
    this.#deliver(this.#tellGranted, request, token);
  }

  /** A request has to wait at this place, which a claim repeats. */
  placed({ id, place }) {
    const request = this.#pending(id);
    if (request !== undefined) request.place = place;
  }

  contended(id) {
    const request = this.#requests.get(id);
    if (request !== undefined) this.#deliver(tellContended, request.entry);
  }

  unavailable(id) {
    const request = this.#pending(id);
    if (request === undefined) return;
    this.#forget(request);
    this.#deliver(tellUnavailable, request.entry);
  }

  /** The numbers of locks that nobody believes in any more. */
  refused(id, fault, cycle) {
    const request = this.#pending(id);
    if (request === undefined) return [];
    this.#forget(request);
    const { entry } = request;
    const refusal = this.#describe(fault, cycle);
    // They will never be taken, whoever waits.
    if (fault.code === 'limit' && this.#isTooMuch(entry.scope)) refusal.name = 'NotSupportedError';
    this.refuse(entry, refusal);
    return entry.steal ? this.#spare(request) : [];
  }

  /** A theft comes to nothing. Who was told of it already lets go all the same. */
  #spare(thief) {
    const released = [];
    this.#requests.forEach((request) => {
      if (!request.doomed || !steals(thief, request)) return;
      request.doomed = false;
      if (request.entry.loss === undefined) return;
      this.#forget(request);
      this.#lose(request.entry, 'Stolen');
      append(released, request.id);
    });
    return released;
  }

  /** False when nobody is concerned. */
  lost(id, cause) {
    const request = this.#requests.get(id);
    if (request === undefined) return false;
    const { entry, stage } = request;
    this.#forget(request);
    if (stage === PENDING) this.#deliver(tellAborted, entry, cause);
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

  // ---- what becomes of them when the session does not go on, or nothing ever will

  /** A session is over: what was held is lost, what waits is to wait for the next one. */
  lapse(cause) {
    this.#requests.forEach((request) => {
      request.place = undefined;
      if (request.stage === HELD) {
        this.#requests.delete(request.id);
        this.#lose(request.entry, cause);
      } else if (request.stage === GRANTED) {
        request.stage = PENDING;
        request.doomed = false;
        request.entry.loss = undefined;
        if (request.entry.steal) this.#thieves.add(request);
        this.wait(1);
      }
    });
  }

  /**
   * All that waits is over: it was aborted if there is a cause, and refused otherwise. Returns the
   * numbers of these requests.
   */
  end(refusal, error, cause) {
    const ended = [];
    this.#requests.forEach((request) => {
      if (request.stage !== PENDING) return;
      this.#forget(request);
      append(ended, request.id);
      if (cause === undefined) this.refuse(request.entry, refusal);
      else this.#deliver(tellAborted, request.entry, cause);
    });
    this.#questions.forEach(({ id }) => this.#deliver(this.#takeQuestion(id).reject, error));
    return ended;
  }

  /** Whether a lock, a request or a question needs the service. */
  get isNeeded() {
    return this.#requests.size > 0 || this.#questions.size > 0;
  }

  /** Whether an answer of the service is waited for. */
  get isWaiting() {
    return this.#waiting > 0;
  }

  /** The numbers of the requests that the service is to keep. */
  get alive() {
    const ids = [];
    this.#requests.forEach((_, id) => append(ids, id));
    return plainList(ids);
  }

  has(id) {
    return this.#requests.has(id);
  }

  /** All requests, to be sent to a service that was started again. A held one that is too long for it is lost. */
  claim() {
    const [texts, later] = [[], []];
    this.#requests.forEach(({ id, client, entry, stage, token, place }) => {
      const isHeld = stage !== PENDING;
      const text = say.request(id, client, entry, isHeld ? { token } : { place });
      const fault = this.#tooLong(text);
      if (fault === undefined) append(texts, text);
      else if (isHeld) this.lost(id, 'ServiceGone');
      else this.#refuseAgain(id, fault, later);
    });
    append(texts, say.claimed);
    each(later, (text) => append(texts, text));
    return texts;
  }

  /** The requests that were not answered, to be sent over another connection. One that is too long for this service fails. */
  unanswered() {
    const texts = [];
    this.#requests.forEach(({ id, client, entry, stage }) => {
      if (stage !== PENDING) return;
      const text = say.request(id, client, entry);
      const fault = this.#tooLong(text);
      if (fault === undefined) append(texts, text);
      else this.#refuseAgain(id, fault, texts);
    });
    return texts;
  }

  #refuseAgain(id, fault, texts) {
    each(this.refused(id, fault), (released) => append(texts, say.release(released)));
  }

  /** What follows the requests: locks whose contention is watched, and questions that were not answered. */
  questions() {
    const texts = [];
    this.#requests.forEach(({ id, entry, stage }) => {
      if (stage === HELD && entry.watchesContention) append(texts, say.contention(id));
    });
    this.#questions.forEach(({ id, client, question }) => {
      const text = say.ask(id, client, question);
      const refused = this.#tooLong(text);
      if (refused === undefined) append(texts, text);
      else this.answered({ id, reply: { refused } });
    });
    return texts;
  }

  /** More or fewer wait for something: as long as any do, the event loop stays alive. */
  wait(more) {
    const before = this.#waiting;
    this.#waiting = before + more;
    if ((before === 0) !== (this.#waiting === 0)) this.#platform.keepAlive?.(this.#waiting > 0);
  }

  #tellGranted = (request, token) => {
    // The process may have been stopped since.
    this.#check();
    if (request.stage !== GRANTED || request.token !== token) return;
    request.stage = HELD;
    request.entry.granted(token);
  };

  #lose(entry, cause) {
    entry.loss = cause;
    this.#deliver(tellLost, entry, cause);
  }

  #pending(id) {
    const request = this.#requests.get(id);
    return request?.stage === PENDING ? request : undefined;
  }

  #forget(request) {
    this.#requests.delete(request.id);
    this.#thieves.delete(request);
    if (request.stage === PENDING) this.wait(-1);
  }

  #takeQuestion(id) {
    const question = this.#questions.get(id);
    if (this.#questions.delete(id)) this.wait(-1);
    return question;
  }

  #deliver(tell, whom, value) {
    this.#platform.deliveries.add(tell, whom, value);
  }

  #tooLong(text) {
    const max = this.#limits['message-bytes-max'] ?? Infinity;
    const bytes = bytesBeyond(text, max);
    if (bytes === undefined) return undefined;
    return { code: 'limit', message: `this takes a message of ${bytes} bytes, and the service takes ${max}: use shorter names` };
  }

  #describe({ code, message }, cycle) {
    const cause = cycle === undefined ? code : { code, clients: cycle.clients, ids: cycle.requests };
    return { name: refusalOf(code).error, message, cause };
  }

  #error(fault) {
    const { name, message, cause } = this.#describe(fault);
    return this.#platform.exception(name, message, cause);
  }

  /** Whether the names are what is beyond a limit. */
  #isTooMuch(scope) {
    const names = typeof scope === 'string' ? [scope] : scope;
    const bytesMax = this.#limits['name-bytes-max'] ?? Infinity;
    return names.length > (this.#limits['names-per-request-max'] ?? Infinity) || some(names, (name) => bytesBeyond(name, bytesMax));
  }
}

/** Whether one request takes away the lock of another one of the same client, made earlier. */
function steals(thief, { id, client, entry }) {
  return thief.id > id && thief.client === client && intersect(thief.entry.scope, entry.scope);
}

function intersect(one, other) {
  if (typeof one === 'string') return typeof other === 'string' ? one === other : includes(other, one);
  return typeof other === 'string' ? includes(one, other) : some(one, (name) => includes(other, name));
}

function tellUnavailable(entry) {
  entry.unavailable();
}

function tellContended(entry) {
  entry.contended();
}

function tellLost(entry, cause) {
  entry.lost(cause);
}

function tellAborted(entry, cause) {
  entry.aborted(cause);
}

function tellRefused(entry, refusal) {
  entry.refused(refusal);
}
