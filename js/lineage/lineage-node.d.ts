// The older drafts of the Web Locks API in Node: over any locks, and over those of this process.

import type { Lineage } from './lineage.js';

export * from './lineage.js';
export const acquire: Lineage['acquire'];
export const auto: Lineage['auto'];
export const explicit: Lineage['explicit'];
export const forceRelease: Lineage['forceRelease'];
export const query: Lineage['query'];
export const requestExplicitLock: Lineage['requestExplicitLock'];
export const requestFlag: Lineage['requestFlag'];
export const requestLock: Lineage['requestLock'];
export const scoped: Lineage['scoped'];
