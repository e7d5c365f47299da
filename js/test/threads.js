// Other clients in Node: worker threads.

import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { Flag, Lock, lineageOf } from '../lineage.js';
import { Client } from './conformance/client.js';

const AGENT = new URL('./agent-thread.js', import.meta.url);

/** Starts a worker that obeys orders, with its own `locks` of the same provider. */
export async function startClient(providerName) {
  const worker = new Worker(AGENT, { workerData: { providerName }, stderr: true });
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  worker.on('error', () => {});
  await once(worker, 'message');
  const channel = {
    send: (message) => worker.postMessage(message),
    receive: (hear) => worker.on('message', hear),
    kill: () => worker.terminate(),
    ended,
  };
  return new Client(channel, ['exit', 'crash']);
}

/** Rows that are about the collector call it. Where flags cannot be set while a program runs, they are given at its start. */
function exposeCollector() {
  setFlagsFromString('--expose-gc');
  globalThis.gc ??= runInNewContext('globalThis.gc');
}

/** A provider by its name, with other clients in worker threads unless it has its own. */
export async function loadProvider(providerName) {
  exposeCollector();
  const { provider } = await import(`./providers/${providerName}.js`);
  const lineage = provider.extended && { ...lineageOf(provider.extended), Lock, Flag };
  return { newClient: () => startClient(providerName), lineage, ...provider };
}
