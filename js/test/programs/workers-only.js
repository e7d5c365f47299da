// Loads the addon in workers only, one after the other: tokens keep growing.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

const code = `
  const { parentPort } = require('node:worker_threads');
  import(process.argv[2])
    .then(({ locks }) => locks.request('a', (lock) => lock.fencingToken))
    .then((token) => parentPort.postMessage(token));
`;
const tokens = [];
for (let count = 0; count < 3; count++) {
  const worker = new Worker(code, { eval: true, argv: [import.meta.resolve('navlocks')] });
  const exit = once(worker, 'exit');
  tokens.push(...(await once(worker, 'message')));
  await exit;
}
console.log(tokens.join());
