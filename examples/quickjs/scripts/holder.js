// A worker that holds a lock for ever, in a loop without end.

navigator.locks.request('database', () => {
  postMessage('held');
  for (;;);
});
