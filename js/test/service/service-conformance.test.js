// The standard's cases through a service, over a Unix socket and TCP; other clients are processes.

import { describe, test } from 'node:test';
import { runCase } from '../conformance/bench.js';
import { casesFor } from '../conformance/cases.js';
import { loadProvider } from '../support/threads.js';

for (const providerName of ['service-unix', 'service-tcp']) {
  const provider = await loadProvider(providerName);
  describe(providerName, () => {
    for (const testCase of casesFor(provider)) test(`${testCase.id} ${testCase.title}`, () => runCase(testCase, provider));
  });
}
