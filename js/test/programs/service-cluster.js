// Runs service-counter.js in a Node cluster: each worker is a process with its own connection.

import cluster from 'node:cluster';
import { count } from './service-counter.js';

const { COUNTER_URL, COUNTER_FILE } = process.env;

if (cluster.isPrimary) {
  for (let number = 0; number < 3; number++) cluster.fork();
} else {
  await count(COUNTER_URL, COUNTER_FILE, 20);
  cluster.worker.disconnect();
}
