// The global object of an agent. The host calls `host.step` and `host.handle`.

import { listensTo } from './events.js';
import { runTask, untilTimer } from './tasks.js';
import { mail, isWaiting } from './locks.js';
import { ended, hasWorkers, message } from './worker.js';

const { host } = globalThis;
delete globalThis.host;

/** Ends this agent after the current task. */
let closed = false;
globalThis.close = () => {
  closed = true;
};

/** Runs a task. Otherwise returns how long to wait, as `Agent::turn` describes it. */
host.step = () => {
  if (closed) return -3;
  if (runTask()) return undefined;
  const wait = untilTimer();
  if (wait !== undefined) return wait;
  return isWaiting() || hasWorkers() || (host.isWorker && listensTo('message')) ? -1 : -2;
};

const handlers = { mail, message, ended };
host.handle = (kind, ...given) => handlers[kind](...given);
