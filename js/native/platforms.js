// The packages with the native addon and the command, one for each platform.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import process, { arch, platform } from 'node:process';

/** The platforms that the release builds a package for, as npm's `os`, `cpu` and `libc`. */
export const PLATFORMS = [
  { os: 'linux', cpu: 'x64', libc: 'glibc' },
  { os: 'linux', cpu: 'arm64', libc: 'glibc' },
  { os: 'linux', cpu: 'x64', libc: 'musl' },
  { os: 'linux', cpu: 'arm64', libc: 'musl' },
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

/** Returns npm's name of the libc of this process. */
export function libc() {
  // A report lists network interfaces too, unless it is told not to.
  const { report } = process;
  const { excludeNetwork } = report;
  report.excludeNetwork = true;
  const { glibcVersionRuntime } = report.getReport().header;
  report.excludeNetwork = excludeNetwork;
  return glibcVersionRuntime === undefined ? 'musl' : 'glibc';
}

/** Returns the folder of a platform's package if it is installed. */
function folderOf(known) {
  try {
    return dirname(require.resolve(`${packageOf(known)}/package.json`));
  } catch {
    return undefined;
  }
}

/** Returns the folder of this platform's package if it is installed. */
function findFolder() {
  const installed = PLATFORMS.filter(({ os, cpu }) => os === platform && cpu === arch)
    .map((known) => ({ ...known, folder: folderOf(known) }))
    .filter(({ folder }) => folder !== undefined);
  // npm installs that of the machine's libc. Older package managers install all.
  const [only] = installed.length > 1 ? installed.filter((known) => known.libc === libc()) : installed;
  return only?.folder;
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
