// The provider of the older drafts on the locks of this process.

import { LockHandle, locks } from 'navlocks';
import * as direct from 'navlocks/lineage';

const installed = { Object, Promise, TypeError };
direct.installLineage(installed, locks);

export const provider = { locks, extended: locks, LockHandle, lineage: direct, installed };
