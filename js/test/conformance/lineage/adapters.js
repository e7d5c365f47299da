// The adapters between release styles, copied from the explainer, with `async` added where it was
// missing.

export function explicitFromAuto({ requestLock }) {
  async function requestExplicitLock(...args) {
    const lock = await requestLock(...args);
    lock.waitUntil(new Promise(resolve => { lock.release = resolve; }));
    return lock;
  }
  return requestExplicitLock;
}

export function autoFromExplicit({ requestLock }) {
  function Extendable() {
    let resolve, reject;
    const promise = new Promise((res, rej) => {
      resolve = res;
      reject = rej;
    });

    let ps;
    promise.waitUntil = function(p) {
      ps = ps ? Promise.all([ps, p]) : p;
      const snapshot = ps;
      ps.then(
        () => { if (snapshot === ps) resolve(); },
        err => { if (snapshot === ps) reject(err); }
      );
    };
    return promise;
  }

  async function requestAutoReleaseLock(...args) {
    const lock = await requestLock(...args);
    const ext = Extendable();
    ext.then(() => lock.release(), () => lock.release());
    ext.waitUntil(Promise.resolve().then(() => Promise.resolve().then()));
    lock.waitUntil = ext.waitUntil.bind(ext);
    return lock;
  }
  return requestAutoReleaseLock;
}

export function explicitFromScoped({ requestLock }) {
  function requestExplicitLock(scope, ...rest) {
    return new Promise(resolve => {
      requestLock(scope, lock => {
        // p waits until lock.release() is called
        const p = new Promise(r => { lock.release = r; });
        resolve(lock);
        return p;
      }, ...rest);
    });
  }
  return requestExplicitLock;
}

export function scopedFromExplicit({ requestLock }) {
  async function requestScopedLock(scope, callback, ...rest) {
    const lock = await requestLock(scope, ...rest);
    try {
      await callback(lock);
    } finally {
      lock.release();
    }
  }
  return requestScopedLock;
}
