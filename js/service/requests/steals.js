// The pending steals of a session, by the names that they take.

import { KeptMap, KeptSet } from '../../internal/collections.js';
import { each } from '../../internal/lists.js';

/** A lookup costs the names of the lock, whatever the number of steals. */
export class Steals {
  /** { ids, newest } by client and name. */
  #byName = new KeptMap();

  add(steal) {
    eachKey(steal, (key) => {
      let known = this.#byName.get(key);
      if (known === undefined) this.#byName.set(key, (known = { ids: new KeptSet(), newest: 0 }));
      known.ids.add(steal.id);
      known.newest = steal.id;
    });
  }

  /** Removes a steal that is pending no more. Returns whether it was there. */
  delete(steal) {
    let wasThere = false;
    eachKey(steal, (key) => {
      const known = this.#byName.get(key);
      if (!known?.ids.delete(steal.id)) return;
      wasThere = true;
      if (known.ids.size === 0) this.#byName.delete(key);
      else if (known.newest === steal.id) known.newest = newestOf(known.ids);
    });
    return wasThere;
  }

  /** Returns the newest pending steal of the same client that takes this lock; 0 without one. */
  thiefOf(lock) {
    let thief = lock.id;
    if (this.#byName.size > 0) eachKey(lock, (key) => (thief = Math.max(thief, this.#byName.get(key)?.newest ?? 0)));
    return thief > lock.id ? thief : 0;
  }
}

function eachKey({ client, entry: { scope } }, work) {
  each(typeof scope === 'string' ? [scope] : scope, (name) => work(`${client} ${name}`));
}

function newestOf(ids) {
  let newest = 0;
  ids.forEach((id) => {
    if (id > newest) newest = id;
  });
  return newest;
}
