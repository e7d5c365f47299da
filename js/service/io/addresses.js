// The addresses of a service: one, or those of the nodes of a cluster.

import { each, includes, joined, mapped, some } from '../../internal/lists.js';

const { isArray } = Array;
const { split } = String.prototype;

/**
 * Reads one address, or a list such as `wss://n1:7400,n2:7400`: later ones may leave out the scheme
 * of the first.
 *
 * @param given what a program wrote: a text, a URL, or an array of these
 * @param parse understands one address: { path } or { url }; returns nothing if it is none
 * @param fail  throws this sentence
 */
export function readAddresses(given, parse, fail) {
  const one = (part, where = '') => parse(part) ?? fail(`'${part}' is no address of a service: write ${parse.forms}${where}`);
  const parts = mapped(isArray(given) ? given : Reflect.apply(split, `${given}`, [',']), (part) => `${part}`.trim());
  const text = isArray(given) ? joined(parts) : `${given}`;
  // The path of a socket may have a comma in it.
  let isPath = isUnix(text);
  each(parts, (part, index) => (isPath &&= index === 0 || !hasScheme(part)));
  if (parts.length < 2 || (isPath && !isArray(given))) return [one(text)];
  if (some(parts, isUnix)) {
    fail(`'${text}' has a Unix socket in a list: a list has addresses of one cluster, ws://host:port or wss://host:port`);
  }
  if (includes(parts, '')) fail(`'${text}' has an empty address in its list: remove the comma`);
  if (!hasScheme(parts[0])) fail(`'${parts[0]}' is no address of a service: write ${parse.forms} (in the list '${text}')`);
  const scheme = parts[0].slice(0, parts[0].indexOf('://') + 3);
  const addresses = mapped(parts, (part) => one(hasScheme(part) ? part : scheme + part, ` (in the list '${text}')`));
  if (some(addresses, (address) => isEncrypted(address) !== isEncrypted(addresses[0]))) {
    fail(`'${text}' mixes ws: and wss: use one of them for all addresses`);
  }
  return addresses;
}

/** Whether everything that is sent there is encrypted. */
export function isEncrypted({ url }) {
  return url?.protocol === 'wss:';
}

/** Whether everything that is sent there can be read on the way to another machine. */
export function isInClear({ url }) {
  return url?.protocol === 'ws:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
}

/** Refuses to send a token to another machine unencrypted, unless the program allows it. */
export function checkToken(addresses, settings, exception) {
  each(addresses, (address) => {
    if (!hidesToken(settings) || !isInClear(address)) return;
    const host = address.url.hostname.replace(/^\[|\]$/g, '');
    throw exception('SecurityError', `the access token would go to ${host} unencrypted: use wss:, or allow it by name`);
  });
}

/** Whether a client has a token that must not be sent in clear. */
export function hidesToken({ token, allowTokenInClear }) {
  return token !== undefined && !allowTokenInClear;
}

function isUnix(text) {
  return text.startsWith('unix:');
}

function hasScheme(text) {
  return isUnix(text) || text.includes('://');
}
