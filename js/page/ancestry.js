// The partition of a page by its ancestors: a frame below another site has a partition of its own.
// https://w3c.github.io/web-locks/#lock-managers, https://storage.spec.whatwg.org/#storage-keys
//
// A worker cannot see its ancestors, so a frame adds its partition to the address of each worker.

import { each, mapped } from '../internal/lists.js';

const MARK = 'navlocks-below=';

/** Returns the name of an environment's partition; empty if all ancestors are of its own site. */
export function partitionOf(realm) {
  const top = realm.document === undefined ? markOf(realm) : topOf(realm);
  if (top === undefined) return '';
  markWorkers(realm, top);
  return `below ${top}`;
}

/** Returns the origin of the top page if any ancestor of a window is of another site. */
function topOf(realm) {
  const ancestors = ancestorsOf(realm);
  for (let index = 0; index < ancestors.length; index++) {
    if (!isSameSite(realm.origin, ancestors[index])) return ancestors[ancestors.length - 1];
  }
  return undefined;
}

/** Returns the mark that the starting frame or worker put into this worker's address. */
function markOf({ location }) {
  const found = location?.hash?.match(new RegExp(`[#&]${MARK}([^&]*)`));
  return found ? decodeURIComponent(found[1]) : undefined;
}

/** Adds the mark to the address of each worker that this realm starts from now on. */
function markWorkers(realm, top) {
  each(['Worker', 'SharedWorker'], (name) => {
    const Constructor = realm[name];
    if (Constructor === undefined) return;
    const construct = (target, given, newTarget) => {
      const url = given[0];
      // The address of a trusted script cannot be changed.
      const address = realm.trustedTypes?.isScriptURL(url) ? undefined : parse(`${url}`, realm.document?.baseURI ?? realm.location.href);
      if (address === undefined) return Reflect.construct(target, given, newTarget);
      address.hash += `${address.hash === '' ? '' : '&'}${MARK}${encodeURIComponent(top)}`;
      return Reflect.construct(target, mapped(given, (value, index) => (index === 0 ? address.href : value)), newTarget);
    };
    Object.defineProperty(realm, name, { value: new Proxy(Constructor, { construct }), writable: true, enumerable: false, configurable: true });
  });
}

/** Returns the origins of all ancestors, nearest first; `null` where the browser hides one. */
function ancestorsOf(realm) {
  const { ancestorOrigins } = realm.location ?? {};
  if (ancestorOrigins !== undefined) return ancestorOrigins;
  const origins = [];
  for (let window = realm; window.parent !== undefined && window !== window.parent; window = window.parent) {
    origins[origins.length] = originOf(window.parent);
  }
  return origins;
}

function originOf(window) {
  try {
    return window.location.origin;
  } catch {
    return 'null';
  }
}

/**
 * Returns whether two origins have the same scheme, and equal hosts or one host below the other.
 * A page has no list of public suffixes, so sibling hosts count as two sites.
 */
export function isSameSite(one, other) {
  if (one === other) return one !== 'null';
  const a = parse(one);
  const b = parse(other);
  if (a === undefined || b === undefined || a.protocol !== b.protocol) return false;
  return a.hostname === b.hostname || isBelow(a.hostname, b.hostname) || isBelow(b.hostname, a.hostname);
}

function isBelow(host, other) {
  return other.includes('.') && host.endsWith(`.${other}`);
}

function parse(url, base = undefined) {
  try {
    return new URL(url, base);
  } catch {
    return undefined;
  }
}
