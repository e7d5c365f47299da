// The main thread waits only for a lock that a worker holds for a while.

import { Worker } from 'node:worker_threads';
import { locks } from 'navlocks';

const worker = new Worker(
  `
  const { parentPort } = require('node:worker_threads');
  import(process.argv[2]).then(({ locks }) => locks.request('a', () => {
    parentPort.postMessage('held');
    return new Promise((resolve) => setTimeout(resolve, 100));
  }));
  `,
  { eval: true, argv: [import.meta.resolve('navlocks')] },
);
worker.unref();
worker.once('message', () => {
  locks.request('a', () => console.log('granted'));
});
// Until the worker holds the lock, this keeps the process alive.
const alive = setInterval(() => {}, 1000);
worker.once('message', () => clearInterval(alive));
