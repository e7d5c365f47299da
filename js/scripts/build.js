// Builds the native addon and copies it to where addon.js looks for it.

import { execFileSync } from 'node:child_process';
import { copyFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const native = join(here, 'native');

const messages = execFileSync('cargo', ['build', '--release', '--locked', '--message-format=json-render-diagnostics'], {
  cwd: native,
  encoding: 'utf8',
  maxBuffer: 2 ** 26,
  stdio: ['ignore', 'pipe', 'inherit'],
});

// Cargo prints the path of the library, so any target folder works.
const library = messages
  .split('\n')
  .filter((line) => line.startsWith('{'))
  .map((line) => JSON.parse(line))
  .filter((message) => message.reason === 'compiler-artifact' && message.target.name === 'navlocks_node')
  .flatMap((message) => message.filenames)
  .find((file) => /\.(so|dylib|dll)$/.test(file));
if (library === undefined) throw new Error('cargo built no library: is crate-type still cdylib?');

// Renamed into place, so that a process with the old addon loaded keeps its file.
const addon = join(native, 'navlocks.node');
copyFileSync(library, `${addon}.new`);
renameSync(`${addon}.new`, addon);
