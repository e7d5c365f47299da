// The cases of the package's extensions, for all extended locks.

import { downgrades } from './downgrades.js';
import { drains } from './drains.js';
import { elections } from './elections.js';
import { events } from './events.js';
import { handles } from './handles.js';
import { holds } from './holds.js';
import { limits } from './limits.js';
import { nesting } from './nesting.js';
import { reports } from './reports.js';
import { scopes } from './scopes.js';
import { timeouts } from './timeouts.js';

export const extensions = [scopes, limits, downgrades, drains, holds, timeouts, handles, reports, nesting, events, elections].flat();
