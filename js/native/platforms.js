// The packages with the native addon and the command, one for each platform.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { arch, platform } from 'node:process';

/** The platforms that the release builds a package for, as npm's `os`, `cpu` and `libc`. */
export const PLATFORMS = [
  { os: 'linux', cpu: 'x64', libc: 'glibc' },
  { os: 'linux', cpu: 'arm64', libc: 'glibc' },
];

/** Returns the name of a platform, such as `linux-x64-glibc`. */
export function nameOf({ os, cpu, libc }) {
  return `${os}-${cpu}-${libc}`;
}

/** Returns the name of a platform's package. */
export function packageOf(known) {
  return `@navlocks/${nameOf(known)}`;
}

const require = createRequire(import.meta.url);

/** Returns the folder of this platform's package if it is installed. npm chooses the libc. */
function findFolder() {
  for (const known of PLATFORMS) {
    if (known.os !== platform || known.cpu !== arch) continue;
    try {
      return dirname(require.resolve(`${packageOf(known)}/package.json`));
    } catch {
      // This package is not installed.
    }
  }
  return undefined;
}

/** Returns the path of a file in this platform's package; undefined if there is none. */
export function findFile(name) {
  const folder = findFolder();
  const file = folder === undefined ? undefined : join(folder, name);
  return file !== undefined && existsSync(file) ? file : undefined;
}

/** Returns why this platform's package is missing, and what to do. */
export function explainMissing() {
  const here = PLATFORMS.filter(({ os, cpu }) => os === platform && cpu === arch).map(packageOf);
  if (here.length === 0) return `there is none for ${platform}-${arch}, but for ${PLATFORMS.map(nameOf).join(', ')}`;
  return `${here.join(' or ')} is not installed: npm installs it with navlocks, unless optional dependencies are left out`;
}
