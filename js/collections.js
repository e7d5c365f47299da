// Collections that keep the methods they had when the package was loaded: a page may replace what
// its own ones inherit.
//
// They are walked by forEach(): iterators inherit too.

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
