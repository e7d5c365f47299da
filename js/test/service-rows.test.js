// Every row through a service, over a Unix socket and over TCP; other clients are processes.

import { describe, test } from 'node:test';
import { tryRow } from './conformance/bench.js';
import { rowsFor } from './conformance/rows.js';
import { loadProvider } from './threads.js';

for (const providerName of ['service-unix', 'service-tcp']) {
  const provider = await loadProvider(providerName);
  describe(providerName, () => {
    for (const row of rowsFor(provider)) test(`${row.id} ${row.title}`, () => tryRow(row, provider));
  });
}
