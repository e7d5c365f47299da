// Why a service refuses, and which error that is to a program.

/**
 * By the code of the wire; the codes below the line are this package's own. A client that is refused for a `final` one
 * will be refused at the next attempt too. A test compares the codes of the wire with those of `navlocks-wire`.
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
  blocked: { error: 'SecurityError', final: true },
  unsafe: { error: 'SecurityError', final: true },
  closed: { error: 'InvalidStateError', final: true },
};

const OTHER = { error: 'OperationError', final: true };

/** What a code means: the name of its DOMException, and whether it is worth trying again. */
export function refusalOf(code) {
  return Object.hasOwn(REFUSALS, code) ? REFUSALS[code] : OTHER;
}

/** What the code of an HTTP answer means that is no WebSocket. */
export function codeOfStatus(status) {
  switch (status) {
    case 401:
      return 'unauthorized';
    case 403:
      return 'forbidden-origin';
    case 426:
      return 'version';
    case 429:
    case 503:
      return 'limit';
    default:
      // A proxy whose service is being restarted says such things.
      return status >= 500 ? 'internal' : 'other';
  }
}

/** Why a connection did not come about, or is no more, as the error that it is: { name, message, cause }. */
export function describeFailure({ code, message }) {
  const sentence = {
    unreachable: `the lock service cannot be reached: ${message}`,
    handshake: `what answers there is no lock service for this client: ${message}`,
    blocked: `the browser does not allow the connection: ${message}`,
    unsafe: message,
    closed: message,
  }[code];
  return { name: refusalOf(code).error, message: sentence ?? `the lock service refuses the connection: ${message}`, cause: code };
}
