// Runs every case on a provider and prints a JSON line for each, for workers and other runtimes.
// node conformance-runner.js PROVIDER [milliseconds] [INDEX of one case, or all] [BODY]

import process from 'node:process';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { runCase } from '../conformance/bench.js';
import { casesFor } from '../conformance/cases.js';
import { loadProvider } from './threads.js';

const { providerName, milliseconds = '120000', index, body } = isMainThread ? read(process.argv) : workerData;
const provider = await loadProvider(providerName);

const cases = casesFor(provider, body);

for (const testCase of index === undefined ? cases : [cases[index]]) {
  const { id, title } = testCase;
  let error;
  try {
    await runCase(testCase, provider, Number(milliseconds));
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
