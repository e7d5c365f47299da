// Collections with the methods that were there when the package was loaded: a page may replace
// them. Iterators inherit too, so callers use forEach().

function keep(Collection) {
  class Kept extends Collection {}
  const members = Object.getOwnPropertyDescriptors(Collection.prototype);
  delete members.constructor;
  Object.defineProperties(Kept.prototype, members);
  return Kept;
}

export const KeptMap = keep(Map);
export const KeptSet = keep(Set);
export const KeptWeakMap = keep(WeakMap);
