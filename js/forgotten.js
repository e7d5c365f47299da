// Handles that a program forgot: garbage collected while their lock is held, which nothing can
// release any more.

/**
 * How long a handle is young. Most are released by then, and to watch one takes longer than to get
 * a lock.
 */
const YOUNG_MS = 1000;
const YOUNG_MAX = 4096;

/** Watches handles for their end. */
export class Forgotten {
  /** Handles that are not watched yet, each followed by its entry. */
  #young = [];
  #isWaiting = false;
  #registry = new FinalizationRegistry((entry) => {
    if (!entry.isHeld) return;
    const where = entry.made === undefined ? '' : `, and was made here: ${entry.made}`;
    entry.host.warn?.(`a LockHandle was garbage collected and its lock '${entry.name}' is still held: release() or dispose of it${where}`);
  });

  add(handle, entry) {
    const young = this.#young;
    const at = young.length;
    young[at] = handle;
    young[at + 1] = entry;
    if (at >= YOUNG_MAX) this.#watch();
    else if (!this.#isWaiting) this.#wait(entry.host);
  }

  #wait({ setTimeout }) {
    this.#isWaiting = true;
    // Keeps no process of Node alive.
    setTimeout(() => {
      this.#isWaiting = false;
      this.#watch();
    }, YOUNG_MS)?.unref?.();
  }

  /** Watches those that are still held. */
  #watch() {
    const young = this.#young;
    for (let at = 0; at < young.length; at += 2) {
      const entry = young[at + 1];
      if (!entry.isHeld) continue;
      entry.dropHandle();
      this.#registry.register(young[at], entry);
    }
    young.length = 0;
  }
}
