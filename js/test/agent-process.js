// A process that obeys orders.

import { serve } from './conformance/agent.js';
import { holdLife } from './processes.js';

const { provider } = await import(`./providers/${process.argv[2]}.js`);
await holdLife(provider.locks);

const channel = {
  send: (message) => process.send(message),
  receive: (hear) => process.on('message', hear),
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
