// navlocks for embedders: `navigator.locks` for a JavaScript engine or a runtime, over a transport
// of its own. Needs no module and no global of a platform.

import { createInterfaces as createStandard } from './standard/locks.js';

export { Deliveries } from './internal/delivery.js';
export { installInterfaces, uninstallInterfaces } from './standard/locks.js';

/** The objects of a realm that the interfaces use, beside those of the language. */
const NEEDED = ['DOMException', 'AbortSignal'];

/** Creates the interfaces of a realm. Throws if the realm lacks an object that they use. */
export function createInterfaces(realm = globalThis) {
  const missing = NEEDED.filter((name) => typeof realm[name] !== 'function');
  if (missing.length > 0) {
    throw new realm.TypeError(`the realm has no ${missing.join(' and no ')}: define it before the locks`);
  }
  return createStandard(realm);
}

/** Creates a manager, for an embedder that does not install it as `navigator.locks`. */
export function createManager(interfaces, host) {
  return interfaces.createManager(host);
}
