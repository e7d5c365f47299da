// The files of the package, of which each build makes a form.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const FOLDERS = ['', 'standard', 'extended', 'lineage', 'native', 'service', 'service/io', 'service/requests', 'page', 'internal'];

/** Returns the paths of modules and types below the package's folder. */
export function shipped(root) {
  const isShipped = (name) => name.endsWith('.js') || name.endsWith('.d.ts');
  return FOLDERS.flatMap((folder) => readdirSync(join(root, folder)).filter(isShipped).map((name) => join(folder, name)));
}
