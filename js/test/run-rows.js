// Tries every row on a provider and prints a JSON line for each: for workers, other runtimes and peers.
// node run-rows.js PROVIDER [milliseconds] [INDEX of one row, or all] [BODY]

import process from 'node:process';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { tryRow } from './conformance/bench.js';
import { rowsFor } from './conformance/rows.js';
import { loadProvider } from './threads.js';

const { providerName, milliseconds = '120000', index, body } = isMainThread ? read(process.argv) : workerData;
const provider = await loadProvider(providerName);

const rows = rowsFor(provider, body);

for (const row of index === undefined ? rows : [rows[index]]) {
  const { id, title } = row;
  let error;
  try {
    await tryRow(row, provider, Number(milliseconds));
  } catch (caught) {
    error = String(caught?.stack ?? caught);
  }
  const result = { id, title, passed: error === undefined, error };
  if (isMainThread) console.log(JSON.stringify(result));
  else parentPort.postMessage(result);
}
if (isMainThread) process.exit(0);

function read([, , providerName, milliseconds, index, body]) {
  return { providerName, milliseconds, index: index === 'all' ? undefined : index, body };
}
