// The partition of a page by its ancestors: a frame below another site has locks apart from those of its own site's pages.
// https://w3c.github.io/web-locks/#lock-managers, https://storage.spec.whatwg.org/#storage-keys
//
// A worker does not see its ancestors, so a frame with a partition of its own says it in the address of each worker it starts.

import { each, mapped } from './lists.js';

const MARK = 'navlocks-below=';

/** The name of the partition of an environment; the empty one for all that stands below its own site. */
export function partitionOf(realm) {
  const top = realm.document === undefined ? markOf(realm) : topOf(realm);
  if (top === undefined) return '';
  markWorkers(realm, top);
  return `below ${top}`;
}

/** The origin of the page at the top, if any ancestor of a window is of another site. */
function topOf(realm) {
  const ancestors = ancestorsOf(realm);
  for (let index = 0; index < ancestors.length; index++) {
    if (!isSameSite(realm.origin, ancestors[index])) return ancestors[ancestors.length - 1];
  }
  return undefined;
}

/** What the frame or worker that started this worker said. */
function markOf({ location }) {
  const found = location?.hash?.match(new RegExp(`[#&]${MARK}([^&]*)`));
  return found ? decodeURIComponent(found[1]) : undefined;
}

/** Workers that this realm starts from now on know where they stand. */
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

/** The origins of all ancestors, the nearest first. Those that a browser does not show are opaque. */
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
 * Whether two origins are of one site, as far as a page can know without a list of public suffixes: the same scheme, and the
 * same host or one below the other. Two hosts side by side count as two sites.
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
