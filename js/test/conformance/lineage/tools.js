// Helpers of the cases of the older drafts.

/** Returns a promise with its resolve() and reject(). */
export function deferred() {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}

/**
 * Calls acquire() and holds until `release`. `granted` resolves with the lock, `done` settles last.
 */
export function acquired({ lineage }, name, options = {}) {
  const { promise, resolve } = deferred();
  const result = { release: resolve };
  result.granted = new Promise((granted) => {
    result.done = lineage.acquire(name, options, (lock) => {
      granted(lock);
      return promise;
    });
  });
  result.done.catch(() => {});
  return result;
}

/** Returns the held and pending requests of these names, as texts. */
export async function about({ lineage }, ...names) {
  const { held, pending } = await lineage.query();
  return [held, pending].map((rows) => rows.filter(({ name }) => names.includes(name)).map(({ name, mode }) => `${mode} ${name}`));
}

/** Collects unhandled rejections until it is stopped. */
export function watchUnhandled() {
  const reasons = [];
  const { process } = globalThis;
  if (process?.on !== undefined) {
    const listener = (reason) => reasons.push(String(reason));
    process.on('unhandledRejection', listener);
    return { reasons, stop: () => process.off('unhandledRejection', listener) };
  }
  const listener = (event) => {
    event.preventDefault();
    reasons.push(String(event.reason));
  };
  globalThis.addEventListener('unhandledrejection', listener);
  return { reasons, stop: () => globalThis.removeEventListener('unhandledrejection', listener) };
}
