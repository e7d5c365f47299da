// The standard's cases in the main thread, on the package's own `locks` and after install().

import { describe, test } from 'node:test';
import { runCase } from '../conformance/bench.js';
import { casesFor } from '../conformance/cases.js';
import { loadProvider } from '../support/threads.js';

for (const providerName of ['navlocks', 'installed']) {
  const provider = await loadProvider(providerName);
  describe(providerName, () => {
    for (const testCase of casesFor(provider)) test(`${testCase.id} ${testCase.title}`, () => runCase(testCase, provider));
  });
}
