// The rows as a global object: `conformance.run(id, title)`.

import { runCase } from '../bench.js';
import { casesFor } from '../cases.js';
import { Client } from '../client.js';

const { conformanceAdapter } = globalThis;

async function newClient() {
  return new Client(await conformanceAdapter.startAgent(), []);
}

/** A row that runs longer has failed. */
const LIMIT_MS = 10_000;

/** Runs one row. Rejects if it fails. */
export async function run(id, title) {
  const provider = conformanceAdapter.provider();
  if (conformanceAdapter.startAgent !== undefined) provider.newClient = newClient;
  const row = casesFor(provider).find((row) => row.id === id && row.title === title);
  if (row === undefined) throw new Error(`this runtime has no means to run ${id}`);
  await runCase(row, provider, LIMIT_MS);
}
