// All cases, in reading order: { id, title, needs, patience, run(bench) }. `patience` multiplies
// the time limit of cases with many requests.

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
import { extensions } from './extensions/cases.js';
import { lineage } from './lineage/cases.js';

/** The standard's cases by group. */
export const groups = { names, shape, arguments: args, grants, scheduling, 'if-available': ifAvailable, signals, steals, queries, clients };

export const cases = Object.values(groups).flat();

/** All bodies by name. */
const bodies = { standard: cases, extensions, lineage };

/** The cases by which runtimes are compared. No document specifies the extensions. */
export const compared = [...cases, ...lineage];

/**
 * Returns the cases of a body that a provider can run: some need other clients or extended locks.
 */
export function casesFor(provider, body = 'standard') {
  return bodies[body].filter(({ needs = [] }) => needs.every((need) => provider[need] !== undefined));
}
