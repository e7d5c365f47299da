// The older drafts of the Web Locks API in Node: over any locks, and over those of this process.

import { lineageOf } from './lineage.js';
import { locks } from '../node.js';

export { Flag, installLineage, Lock, lineageOf } from './lineage.js';
export const { acquire, auto, explicit, forceRelease, query, requestExplicitLock, requestFlag, requestLock, scoped } = lineageOf(locks);
