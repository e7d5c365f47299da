// A client in a worker thread, which executes commands of a test.

import { parentPort, workerData } from 'node:worker_threads';
import { serve } from '../conformance/agent.js';

const { provider } = await import(`../providers/${workerData.providerName}.js`);

const channel = {
  send: (message) => parentPort.postMessage(message),
  receive: (handle) => parentPort.on('message', handle),
};

serve(provider.locks, channel, {
  exit: () => process.exit(0),
  crash: () => {
    setImmediate(() => {
      throw new Error('as ordered');
    });
  },
});

parentPort.postMessage('ready');
