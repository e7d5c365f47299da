// Connects the rows to one implementation of navigator.locks. To run them in another runtime,
// change this file alone.

globalThis.conformanceAdapter = {
  /** Returns the locks and interfaces under test. */
  provider() {
    const { navigator, LockManager, Lock } = globalThis;
    return { locks: navigator.locks, LockManager, Lock, navigator, global: globalThis };
  },

  /**
   * Starts another client of the same lock space, which runs agent.js. Resolves when it listens.
   * Leave this out where there is none: then the rows with several clients do not run.
   */
  startAgent() {
    const worker = new Worker('resources/agent.js');
    return new Promise((resolve, reject) => {
      let receive;
      worker.addEventListener('error', ({ message }) => reject(new Error(message)));
      worker.addEventListener('message', ({ data }) => {
        if (receive !== undefined) return receive(data);
        resolve({
          send: (message) => worker.postMessage(message),
          receive: (handle) => {
            receive = handle;
          },
          kill: async () => worker.terminate(),
        });
      });
      // The agent answers its first message.
      worker.postMessage('start');
    });
  },
};
