// The entries of a client that may get mail, by number and by name.

/** A steal looks up its own victims at a cost of its names, whatever the number of entries. */
export class NamedEntries extends Map {
  #byName = new Map();

  set(number, entry) {
    for (const name of namesOf(entry)) {
      const known = this.#byName.get(name);
      if (known === undefined) this.#byName.set(name, new Set([entry]));
      else known.add(entry);
    }
    return super.set(number, entry);
  }

  delete(number) {
    const entry = this.get(number);
    if (entry === undefined) return false;
    for (const name of namesOf(entry)) {
      const known = this.#byName.get(name);
      known?.delete(entry);
      if (known?.size === 0) this.#byName.delete(name);
    }
    return super.delete(number);
  }

  /** Calls a function with each entry that has a name of this one. */
  forEachBeside(other, work) {
    for (const name of namesOf(other)) this.#byName.get(name)?.forEach(work);
  }
}

function namesOf({ scope }) {
  return typeof scope === 'string' ? [scope] : scope;
}
