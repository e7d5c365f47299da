// The common part of the providers of a service.

import { connect, Lock, LockHandle, LockManager } from 'navlocks';
import { isAgent, startAgent } from '../support/processes.js';
import { commonUrl } from '../support/service.js';

/**
 * Leases over TCP: long for the test, which may be slow, and short for agents, which are killed.
 */
const LEASE_MS = 600_000;
const AGENT_LEASE_MS = 2000;

export async function connectProvider(kind) {
  const locks = await connect(await commonUrl(kind), { lease: isAgent() ? AGENT_LEASE_MS : LEASE_MS, origin: process.env.NAVLOCKS_TEST_ORIGIN });
  const newClient = () => startAgent(`service-${kind}`, locks);
  return { locks, extended: locks, LockManager, Lock, LockHandle, ordered: true, resists: true, newClient };
}
