// Clients in worker threads.

import { once } from 'node:events';
import process from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { Flag, Lock, lineageOf } from '../../lineage/lineage.js';
import { Client } from '../conformance/client.js';

/** The providers through a service, for tests that the other engine of this process repeats. */
export const throughService = process.env.NAVLOCKS_ENGINE === 'wasm' ? [] : ['service-unix', 'service-tcp'];

const AGENT = new URL('./agent-thread.js', import.meta.url);

/** Starts an agent in a worker, with its own `locks` of the same provider. */
export async function startClient(providerName) {
  const worker = new Worker(AGENT, { workerData: { providerName }, stderr: true });
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  worker.on('error', () => {});
  await once(worker, 'message');
  const channel = {
    send: (message) => worker.postMessage(message),
    receive: (handle) => worker.on('message', handle),
    kill: () => worker.terminate(),
    ended,
  };
  return new Client(channel, ['exit', 'crash']);
}

/** Exposes `gc()` for cases about garbage collection. Other runtimes need a flag at their start. */
function exposeCollector() {
  setFlagsFromString('--expose-gc');
  globalThis.gc ??= runInNewContext('globalThis.gc');
}

/** Loads a provider by its name, with other clients in worker threads unless it has its own. */
export async function loadProvider(providerName) {
  exposeCollector();
  const { provider } = await import(`../providers/${providerName}.js`);
  const lineage = provider.extended && { ...lineageOf(provider.extended), Lock, Flag };
  return { newClient: () => startClient(providerName), lineage, ...provider };
}
