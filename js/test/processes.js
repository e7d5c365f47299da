// Other clients in Node: processes.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Client } from './conformance/client.js';

const AGENT = fileURLToPath(new URL('./agent-process.js', import.meta.url));
const LIFE = 'NAVLOCKS_TEST_LIFE';

/** Whether this process obeys orders. */
export function isAgent() {
  return process.env[LIFE] !== undefined;
}

/** What an agent holds as long as it lives. */
export function holdLife(locks) {
  return locks.partition('lives').hold(process.env[LIFE]);
}

/**
 * Starts a process that obeys orders, with a connection of its own to the same service. It holds a lock as long as it lives, so
 * that its death can be waited for.
 */
export async function startAgent(providerName, locks) {
  const life = `${process.pid} ${Math.random()}`;
  // Not a part of this test run: what it prints is nobody's result.
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const agent = fork(AGENT, [providerName], { env: { ...env, [LIFE]: life }, stdio: ['ignore', 'inherit', 'ignore', 'ipc'] });
  const exit = once(agent, 'exit');
  const [ready] = await Promise.race([once(agent, 'message'), exit]);
  if (ready !== 'ready') throw new Error(`the agent ended with ${ready}`);
  const ended = exit.then(() => locks.partition('lives').request(life, () => {}));
  const kill = () => {
    agent.kill('SIGKILL');
    return ended;
  };
  const channel = {
    send: (message) => agent.connected && agent.send(message, () => {}),
    receive: (hear) => agent.on('message', hear),
    kill,
    end: () => {
      agent.kill('SIGKILL');
      return exit;
    },
    ended,
  };
  return new Client(channel, ['exit', 'crash']);
}
