// Files that differ from platform to platform, each in a package of its own: the native addon, and the
// command.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { arch, platform } from 'node:process';

/** The platforms that have a package, as npm's `os`, `cpu` and `libc`. */
export const PLATFORMS = [
  { os: 'linux', cpu: 'x64', libc: 'glibc' },
  { os: 'linux', cpu: 'arm64', libc: 'glibc' },
  { os: 'linux', cpu: 'x64', libc: 'musl' },
  { os: 'linux', cpu: 'arm64', libc: 'musl' },
  { os: 'darwin', cpu: 'x64' },
  { os: 'darwin', cpu: 'arm64' },
];

/** `linux-x64-musl`: the name of a platform. */
export function nameOf({ os, cpu, libc }) {
  return libc === undefined ? `${os}-${cpu}` : `${os}-${cpu}-${libc}`;
}

/** The name of the package of a platform. */
export function packageOf(known) {
  return `@navlocks/${nameOf(known)}`;
}

const require = createRequire(import.meta.url);

/**
 * The folder of this platform's package; nothing if it is not installed. npm installs the one with
 * the right libc.
 */
function findFolder() {
  for (const known of PLATFORMS) {
    if (known.os !== platform || known.cpu !== arch) continue;
    try {
      return dirname(require.resolve(`${packageOf(known)}/package.json`));
    } catch {
      // Not installed.
    }
  }
  return undefined;
}

/** A file of this platform's package; nothing if there is none. */
export function findFile(name) {
  const folder = findFolder();
  const file = folder === undefined ? undefined : join(folder, name);
  return file !== undefined && existsSync(file) ? file : undefined;
}

/** Why this platform's package is not there, and what to do. */
export function explainMissing() {
  const here = PLATFORMS.filter(({ os, cpu }) => os === platform && cpu === arch).map(packageOf);
  if (here.length === 0) return `there is none for ${platform}-${arch}, but for ${PLATFORMS.map(nameOf).join(', ')}`;
  return `${here.join(' or ')} is not installed: npm installs it with navlocks, unless optional dependencies are left out`;
}
