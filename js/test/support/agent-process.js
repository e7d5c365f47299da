// A client in a process, which executes commands of a test.

import { serve } from '../conformance/agent.js';
import { holdLife } from './processes.js';

const { provider } = await import(`../providers/${process.argv[2]}.js`);
await holdLife(provider.locks);

const channel = {
  send: (message) => process.send(message),
  receive: (handle) => process.on('message', handle),
};

serve(provider.locks, channel, {
  exit: () => process.exit(0),
  crash: () => {
    setImmediate(() => {
      throw new Error('as ordered');
    });
  },
});

process.send('ready');
