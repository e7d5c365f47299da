// All rows, in reading order. A row is { id, title, needs, patience, run(bench) }: one that makes a thousand requests or more has
// the patience of many.

import { names } from './names.js';
import { shape } from './shape.js';
import { args } from './arguments.js';
import { grants } from './grants.js';
import { scheduling } from './scheduling.js';
import { ifAvailable } from './if-available.js';
import { signals } from './signals.js';
import { steals } from './steals.js';
import { queries } from './queries.js';
import { clients } from './clients.js';
import { extensions } from './extensions/rows.js';
import { lineage } from './lineage/rows.js';

export const rows = [names, shape, args, grants, scheduling, ifAvailable, signals, steals, queries, clients].flat();

/** All bodies by name. */
const bodies = { standard: rows, extensions, lineage };

/** What runtimes are compared by. The ancestors are navlocks' alone, and the extensions of no document. */
export const compared = [...rows, ...lineage];

/** Rows of a body that a provider can be asked for: some need other clients, some the extended locks. */
export function rowsFor(provider, body = 'standard') {
  return bodies[body].filter(({ needs = [] }) => needs.every((need) => provider[need] !== undefined));
}
