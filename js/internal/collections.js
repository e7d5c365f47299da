// Collections with the methods that were there when the package was loaded: a page may replace
// them. Iterators inherit too, so callers use forEach().

function keep(Collection) {
  class Kept extends Collection {}
  const members = Object.getOwnPropertyDescriptors(Collection.prototype);
  delete members.constructor;
  Object.defineProperties(Kept.prototype, members);
  return Kept;
}

/** Values by key, as long as something else refers to them. */
export class WeakValues {
  #references = new Map();
  #registry = new FinalizationRegistry((key) => {
    // Another value may have the key by now.
    if (this.get(key) === undefined) this.#references.delete(key);
  });

  get(key) {
    return this.#references.get(key)?.deref();
  }

  set(key, value) {
    this.#references.set(key, new WeakRef(value));
    this.#registry.register(value, key);
  }
}

export const KeptMap = keep(Map);
export const KeptSet = keep(Set);
export const KeptWeakMap = keep(WeakMap);
