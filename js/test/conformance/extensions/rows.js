// The additions of the package to the standard: rows that run wherever `connect()` or `locks` give
// the extended class.

import { events } from './events.js';
import { handles } from './handles.js';
import { reports } from './reports.js';
import { scopes } from './scopes.js';
import { timeouts } from './timeouts.js';

export const extensions = [scopes, timeouts, handles, reports, events].flat();
