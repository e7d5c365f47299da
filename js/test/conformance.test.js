// Every row, in the main thread, on the package's own object and on what install() puts in place.

import { describe, test } from 'node:test';
import { tryRow } from './conformance/bench.js';
import { rowsFor } from './conformance/rows.js';
import { loadProvider } from './threads.js';

for (const providerName of ['navlocks', 'installed']) {
  const provider = await loadProvider(providerName);
  describe(providerName, () => {
    for (const row of rowsFor(provider)) test(`${row.id} ${row.title}`, () => tryRow(row, provider));
  });
}
