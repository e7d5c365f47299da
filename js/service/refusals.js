// The refusals of a service, and the error of each.

import { cycleOf } from './wire.js';

/**
 * By the code of the wire; this package adds the codes below the line. After a `final` refusal
 * another attempt is refused too.
 */
const REFUSALS = {
  'bad-message': { error: 'InvalidStateError', final: true },
  'bad-state': { error: 'InvalidStateError', final: true },
  version: { error: 'NotSupportedError', final: true },
  unauthorized: { error: 'SecurityError', final: true },
  'forbidden-origin': { error: 'SecurityError', final: true },
  'unknown-session': { error: 'AbortError', final: false },
  'slow-reader': { error: 'AbortError', final: true },
  'lease-lapsed': { error: 'AbortError', final: true },
  replaced: { error: 'AbortError', final: true },
  'exclusive-overtake': { error: 'NotSupportedError', final: true },
  limit: { error: 'QuotaExceededError', final: false },
  deadlock: { error: 'AbortError', final: false },
  'shutting-down': { error: 'NetworkError', final: false },
  moved: { error: 'NetworkError', final: false },
  internal: { error: 'OperationError', final: false },
  // ----
  unreachable: { error: 'NetworkError', final: false },
  handshake: { error: 'NetworkError', final: false },
  'unknown-outcome': { error: 'NetworkError', final: false },
  blocked: { error: 'SecurityError', final: true },
  unsafe: { error: 'SecurityError', final: true },
  closed: { error: 'InvalidStateError', final: true },
};

const OTHER = { error: 'OperationError', final: true };

/** Returns the name of a code's DOMException, and whether the refusal is final. */
export function refusalOf(code) {
  return Object.hasOwn(REFUSALS, code) ? REFUSALS[code] : OTHER;
}

/** Returns whether a fault is about messages of the client, which the next session may repeat. */
export function isOfClient(code) {
  return code === 'bad-message' || code === 'bad-state' || code === 'limit';
}

/** Returns the code for the HTTP status of a failed handshake, and its text. */
export function codeOfStatus(status, sentence) {
  switch (status) {
    case 401:
      return 'unauthorized';
    case 403:
      return 'forbidden-origin';
    case 426:
      return 'version';
    case 421:
      // A node of another cluster. A proxy that has no such host answers the same status.
      return sentence.includes('cluster') ? 'bad-state' : 'other';
    case 429:
    case 503:
      return 'limit';
    default:
      // A proxy answers so while its service restarts.
      return status >= 500 ? 'internal' : 'other';
  }
}

/** The failure of an effect that must not be repeated, because the service may have done it. */
export const UNKNOWN_OUTCOME = {
  code: 'unknown-outcome',
  message: 'the connection to the lock service broke before its answer, and the outcome is not known: query the locks before another attempt',
};

/** Returns { name, message, cause } of the error for a refused request, query or stream. */
export function describeFault({ code, message }, cycle) {
  const cause = cycle === undefined ? code : { code, ...cycleOf(cycle) };
  return { name: refusalOf(code).error, message, cause };
}

/** Returns { name, message, cause } of the error for a connection that failed or ended. */
export function describeFailure({ code, message }) {
  const sentence = {
    unreachable: `the lock service cannot be reached: ${message}`,
    handshake: `the server at this address is no lock service for this client: ${message}`,
    blocked: `the browser does not allow the connection: ${message}`,
    unsafe: message,
    closed: message,
  }[code];
  return { name: refusalOf(code).error, message: sentence ?? `the lock service refuses the connection: ${message}`, cause: code };
}

/** Returns the sentence about a service that has a successor. */
export function outdated(epoch, known) {
  return `its epoch is ${epoch}, and a service of epoch ${known} was here before: end the older one, or restore its state`;
}
