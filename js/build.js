// Builds the native addon and puts it where native.js finds it.

import { execFileSync } from 'node:child_process';
import { copyFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const native = join(here, 'native');

const messages = execFileSync('cargo', ['build', '--release', '--locked', '--message-format=json-render-diagnostics'], {
  cwd: native,
  encoding: 'utf8',
  maxBuffer: 2 ** 26,
  stdio: ['ignore', 'pipe', 'inherit'],
});

// Cargo says where the library is, wherever its target folder is.
const library = messages
  .split('\n')
  .filter((line) => line.startsWith('{'))
  .map((line) => JSON.parse(line))
  .filter((message) => message.reason === 'compiler-artifact' && message.target.name === 'navlocks_node')
  .flatMap((message) => message.filenames)
  .find((file) => /\.(so|dylib|dll)$/.test(file));
if (library === undefined) throw new Error('cargo built no library: is crate-type still cdylib?');

// Renamed into place, so that a process that has the old one loaded keeps it.
const addon = join(native, 'navlocks.node');
copyFileSync(library, `${addon}.new`);
renameSync(`${addon}.new`, addon);
