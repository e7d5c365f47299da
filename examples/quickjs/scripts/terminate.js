// A worker is terminated while it holds a lock and never returns to its event loop. The lock goes
// on at once.

const worker = new Worker(`${scriptFolder}/holder.js`);

worker.onmessage = async () => {
  const next = navigator.locks.request('database', () => print('the next client holds the lock'));
  const { held, pending } = await navigator.locks.query();
  print(`${held.length} held, ${pending.length} pending, by ${new Set([...held, ...pending].map(({ clientId }) => clientId)).size} clients`);
  worker.terminate();
  await next;
};
