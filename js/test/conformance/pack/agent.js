// Another client of a row, in a worker.

import { serve } from '../agent.js';

let target = globalThis;
let handle;
const channel = {
  send: (message) => target.postMessage(message),
  receive: (given) => {
    handle = given;
  },
};

addEventListener('message', function receive({ data }) {
  if (typeof globalThis.postMessage !== 'function') target = this;
  if (handle !== undefined) return handle(data);
  serve(navigator.locks, channel);
  channel.send('ready');
});
