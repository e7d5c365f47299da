// Exits while workers request, hold and release locks.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { locks } from 'navlocks';

const code = `
  const { parentPort } = require('node:worker_threads');
  import(process.argv[2]).then(({ locks }) => {
    async function loop() {
      for (;;) await locks.request('a', () => {});
    }
    loop();
    loop();
    parentPort.postMessage('ready');
  });
`;
const workers = [1, 2, 3].map(() => new Worker(code, { eval: true, argv: [import.meta.resolve('navlocks')] }));
await Promise.all(workers.map((worker) => once(worker, 'message')));
for (let count = 0; count < 10; count++) await locks.request('a', () => {});
console.log('exit');
process.exit(0);
