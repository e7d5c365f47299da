// The cases of the older drafts, for all locks of this package.

import { acquire } from './acquire.js';
import { databases } from './databases.js';
import { explainer } from './explainer.js';
import { flags } from './flags.js';
import { losses } from './losses.js';
import { scopes } from './scopes.js';

export const lineage = [acquire, scopes, flags, explainer, losses, databases].flat();
