// The options of `connect()`.

import { wrongPartition } from '../wire.js';

const UNREACHABLE_AFTER_MS = 60_000;

/** The shortest lease: a caller with a smaller number probably means seconds. */
const LEASE_MS_MIN = 100;

/** Converts the options in order. Passes options of the platform through. */
export function readOptions(given, { domString }, exception) {
  if (given !== undefined && (typeof given !== 'object' || given === null)) throw new TypeError('the options are not an object');
  const { lease, partition = '', unreachableAfter = UNREACHABLE_AFTER_MS, token, ...others } = given ?? {};
  return {
    ...others,
    lease: lease === undefined ? undefined : readLease(lease),
    partition: readPartition(domString(partition, "'partition'"), exception),
    unreachableAfter: milliseconds(unreachableAfter, 'unreachableAfter', Infinity),
    token: token === undefined ? undefined : readToken(domString(token, "'token'")),
  };
}

export function readPartition(name, exception) {
  const problem = wrongPartition(name);
  if (problem !== undefined) throw exception('NotSupportedError', problem);
  return name;
}

function readLease(value) {
  const lease = Math.ceil(milliseconds(value, 'lease', Number.MAX_SAFE_INTEGER));
  if (lease < LEASE_MS_MIN) throw new TypeError(`'lease' is ${lease} ms, and ${LEASE_MS_MIN} ms is the least: give milliseconds`);
  return lease;
}

function milliseconds(value, what, max) {
  const number = +value;
  if (!(number >= 0 && number <= max)) throw new TypeError(`'${what}' is not a number of milliseconds`);
  return number;
}

function readToken(token) {
  if (!/^[\x21-\x7e]+$/.test(token)) throw new TypeError("'token' has characters that no token has: check that it is the right file");
  return token;
}
