// The conversions of WebIDL for `LockManager`, with errors of one realm.
// https://webidl.spec.whatwg.org/

import { append, each, sortStrings } from '../internal/lists.js';

/** The largest limit of a request, as in the engine. */
const LIMIT_MAX = 2 ** 28 - 1;

/** @param {typeof globalThis} realm whose errors are thrown, and whose AbortSignal is required */
export function createConversions(realm) {
  const { TypeError } = realm;
  const AbortSignal = realm.AbortSignal ?? globalThis.AbortSignal;
  // This getter recognises signals even with a changed prototype. Simulated browsers may have none.
  const aborted = Object.getOwnPropertyDescriptor(AbortSignal.prototype, 'aborted')?.get;

  /** https://webidl.spec.whatwg.org/#js-DOMString */
  function domString(value, what) {
    if (typeof value === 'string') return value;
    if (typeof value === 'symbol') throw new TypeError(`${what} is a symbol and cannot be converted to a string`);
    return `${value}`;
  }

  /** https://webidl.spec.whatwg.org/#js-callback-function */
  function callback(value) {
    if (typeof value !== 'function') throw new TypeError('the callback is not a function');
    return value;
  }

  function mode(value) {
    const text = domString(value, "'mode'");
    if (text === 'exclusive' || text === 'shared') return text;
    throw new TypeError(`'${text}' is no mode: use 'exclusive' or 'shared'`);
  }

  function signal(value) {
    if (!isSignal(value)) throw new TypeError("'signal' is not an AbortSignal");
    return value;
  }

  function isSignal(value) {
    if (aborted === undefined) return value instanceof AbortSignal;
    try {
      Reflect.apply(aborted, value, []);
      return true;
    } catch {
      return false;
    }
  }

  /** Converts milliseconds; undefined if they are infinite. */
  function timeout(value) {
    const milliseconds = +value;
    if (!(milliseconds >= 0)) throw new TypeError("'timeout' is not a number of milliseconds");
    return milliseconds === Infinity ? undefined : milliseconds;
  }

  /** Converts the largest number of holders. */
  function limit(value) {
    const holders = +value;
    if (Number.isInteger(holders) && holders >= 1 && holders <= LIMIT_MAX) return holders;
    throw new TypeError(`'limit' is not a number of holders from 1 to ${LIMIT_MAX}`);
  }

  /** Converts the longest time for which a lock is held: milliseconds, rounded up. */
  function maxHold(value) {
    const milliseconds = Math.ceil(+value);
    if (milliseconds >= 1 && milliseconds <= Number.MAX_SAFE_INTEGER) return milliseconds;
    throw new TypeError("'maxHold' is not a number of milliseconds, at least 1 and finite");
  }

  function tag(value) {
    return domString(value, "'tag'");
  }

  /** Converts one name or, with the extensions, a sequence of names: sorted, without duplicates. */
  function scope(value, extended) {
    if (!extended || !isSequence(value)) return domString(value, 'the name');
    const sorted = sortStrings(Array.from(value, (name) => domString(name, 'a name of the scope')));
    const names = [];
    each(sorted, (name, index) => {
      if (name !== sorted[index - 1]) append(names, name);
    });
    if (names.length === 0) throw new TypeError('the scope is empty: a lock request needs at least one name');
    return names.length === 1 ? names[0] : Object.freeze(names);
  }

  /**
   * Converts the dictionary `LockOptions`, member by member in lexicographical order.
   * https://webidl.spec.whatwg.org/#js-dictionary
   * https://w3c.github.io/web-locks/#dictdef-lockoptions
   */
  function lockOptions(value, extended) {
    const options = {
      ifAvailable: false,
      limit: undefined,
      maxHold: undefined,
      mode: 'exclusive',
      overtake: false,
      reentrant: false,
      signal: undefined,
      steal: false,
      tag: undefined,
      timeout: undefined,
      traceparent: undefined,
      within: undefined,
    };
    if (value === undefined || value === null) return options;
    if (typeof value !== 'object' && typeof value !== 'function') {
      throw new TypeError('the options are not an object');
    }
    let member = value.ifAvailable;
    if (member !== undefined) options.ifAvailable = Boolean(member);
    if (extended) {
      member = value.limit;
      if (member !== undefined) options.limit = limit(member);
      member = value.maxHold;
      if (member !== undefined) options.maxHold = maxHold(member);
    }
    member = value.mode;
    if (member !== undefined) options.mode = mode(member);
    if (options.limit !== undefined) addLimit(options, member !== undefined);
    if (extended) {
      member = value.overtake;
      if (member !== undefined) options.overtake = Boolean(member);
      member = value.reentrant;
      if (member !== undefined) options.reentrant = Boolean(member);
    }
    member = value.signal;
    if (member !== undefined) options.signal = signal(member);
    member = value.steal;
    if (member !== undefined) options.steal = Boolean(member);
    if (extended) {
      member = value.tag;
      if (member !== undefined) options.tag = tag(member);
      member = value.timeout;
      if (member !== undefined) options.timeout = timeout(member);
      member = value.traceparent;
      if (member !== undefined) options.traceparent = domString(member, "'traceparent'");
      options.within = value.within;
    }
    return options;
  }

  /** Converts the options of a downgrade: shared by default. */
  function sharing(value) {
    const options = { limit: undefined, mode: 'shared' };
    if (value === undefined || value === null) return options;
    if (typeof value !== 'object' && typeof value !== 'function') throw new TypeError('the options are not an object');
    const { limit: holders, mode: given } = value;
    if (holders !== undefined) options.limit = limit(holders);
    if (given !== undefined) options.mode = mode(given);
    if (options.limit !== undefined) addLimit(options, given !== undefined);
    return options;
  }

  /** Gives a request with a limit its mode. A limit of 1 is exclusive. */
  function addLimit(options, hasMode) {
    if (hasMode && options.mode === 'exclusive') {
      throw new TypeError("'limit' and mode 'exclusive' contradict each other: leave out the mode");
    }
    options.mode = options.limit === 1 ? 'exclusive' : 'shared';
    if (options.limit === 1) options.limit = undefined;
  }

  /** Converts the option `capacity` of a stream: a number of events, at least one. */
  function capacity(options, usual) {
    if (options === undefined || options === null) return usual;
    if (typeof options !== 'object' && typeof options !== 'function') throw new TypeError('the options are not an object');
    const { capacity: given } = options;
    const events = given === undefined ? usual : Math.floor(+given);
    if (!(events >= 1 && events <= 2 ** 31)) throw new TypeError("'capacity' is not a number of events");
    return events;
  }

  const converters = { ifAvailable: Boolean, mode, signal, timeout };

  /** Converts a dictionary with these members; ignores all others. */
  function dictionary(value, members) {
    const options = { mode: 'exclusive', ifAvailable: false, steal: false, overtake: false };
    if (value === undefined || value === null) return options;
    if (typeof value !== 'object' && typeof value !== 'function') throw new TypeError('the options are not an object');
    each(members, (member) => {
      const given = value[member];
      if (given !== undefined) options[member] = converters[member](given);
    });
    return options;
  }

  return { domString, callback, mode, scope, sharing, lockOptions, dictionary, timeout, capacity };
}

function isSequence(value) {
  return typeof value === 'object' && value !== null && typeof value[Symbol.iterator] === 'function';
}
