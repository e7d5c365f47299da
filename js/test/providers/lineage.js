// The ancestors on the locks of this process, by the package's own names.

import { LockHandle, locks } from 'navlocks';
import * as direct from 'navlocks/lineage';

const installed = { Object, Promise, TypeError };
direct.installLineage(installed, locks);

export const provider = { locks, extended: locks, LockHandle, lineage: direct, installed };
