// Clients in other processes.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Client } from '../conformance/client.js';

const AGENT = fileURLToPath(new URL('./agent-process.js', import.meta.url));
const LIFE = 'NAVLOCKS_TEST_LIFE';

/** Returns whether this process is an agent. */
export function isAgent() {
  return process.env[LIFE] !== undefined;
}

/** Takes the lock that an agent holds until its end. */
export function holdLife(locks) {
  return locks.partition('lives').hold(process.env[LIFE]);
}

/**
 * Starts an agent process with its own connection to the same service. The agent holds a lock until
 * its end, so that tests can wait for the end.
 */
export async function startAgent(providerName, locks) {
  const life = `${process.pid} ${Math.random()}`;
  // The agent is not part of this test run: its output is no result.
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
    receive: (handle) => agent.on('message', handle),
    kill,
    end: () => {
      agent.kill('SIGKILL');
      return exit;
    },
    ended,
  };
  return new Client(channel, ['exit', 'crash']);
}
