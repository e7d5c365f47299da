// Builds the engine of the package: the native addon, and its form in WebAssembly where the
// compiler has that target. Copies them to where engine.js looks for them.

import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TARGET = 'wasm32-unknown-unknown';

const native = join(dirname(dirname(fileURLToPath(import.meta.url))), 'native');

/** Builds the library, and copies it. Cargo prints its path, so any target folder works. */
function build(name, ending, ...given) {
  const messages = execFileSync('cargo', ['build', '--locked', '--message-format=json-render-diagnostics', ...given], {
    cwd: native,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const library = messages
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
    .filter((message) => message.reason === 'compiler-artifact' && message.target.name === 'navlocks_node')
    .flatMap((message) => message.filenames)
    .find((file) => ending.test(file));
  if (library === undefined) throw new Error('cargo built no library: is crate-type still cdylib?');
  // Renamed into place, so that a process with the old library loaded keeps its file.
  const file = join(native, name);
  copyFileSync(library, `${file}.new`);
  renameSync(`${file}.new`, file);
}

/** Returns whether the compiler has the standard library of the target. */
function hasTarget() {
  const folder = execFileSync('rustc', ['--print', 'target-libdir', '--target', TARGET], { cwd: native, encoding: 'utf8' });
  return existsSync(folder.trim());
}

build('navlocks.node', /\.(so|dylib|dll)$/, '--release');
if (hasTarget()) {
  build('navlocks.wasm', /\.wasm$/, '--profile', 'wasm', '--target', TARGET);
} else {
  rmSync(join(native, 'navlocks.wasm'), { force: true });
  console.warn(`The package is built without its WebAssembly engine: rustup target add ${TARGET}`);
}
