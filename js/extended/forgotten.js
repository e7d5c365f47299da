// Warns of handles that were garbage collected while their lock was held: such a lock cannot be
// released any more.

/** Handles are watched after this time: watching costs more than a grant, and most are released. */
const YOUNG_MS = 1000;
const YOUNG_MAX = 4096;

/** Watches handles for garbage collection. */
export class Forgotten {
  /** Handles that are not watched yet, each followed by its entry. */
  #young = [];
  #isWaiting = false;
  #registry = new FinalizationRegistry((entry) => {
    if (!entry.isHeld) return;
    const where = entry.made === undefined ? '' : `, and was created here: ${entry.made}`;
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
    // The timer must not keep Node alive.
    setTimeout(() => {
      this.#isWaiting = false;
      this.#watch();
    }, YOUNG_MS)?.unref?.();
  }

  /** Watches the handles whose locks are still held. */
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
