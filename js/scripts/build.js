// Builds the engine of the package: the native addon, and its form in WebAssembly where the
// compiler has that target. Copies them to where engine.js looks for them. With `--musl` it builds
// the addon for musl instead, for build-packages.js.

import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { arch } from 'node:process';
import { fileURLToPath } from 'node:url';

const TARGET = 'wasm32-unknown-unknown';

const native = join(dirname(dirname(fileURLToPath(import.meta.url))), 'native');

/** Builds the library, and copies it. Cargo prints its path, so any target folder works. */
function build(name, ending, given, env = {}) {
  const messages = execFileSync('cargo', ['build', '--locked', '--message-format=json-render-diagnostics', ...given], {
    cwd: native,
    env: { ...process.env, ...env },
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
  const file = join(native, name);
  // Another file of the same library would be a second lock space in a process that runs now.
  if (existsSync(file) && readFileSync(file).equals(readFileSync(library))) return;
  // Renamed into place, so that a process with the old library loaded keeps its file.
  const copy = `${file}.${process.pid}`;
  copyFileSync(library, copy);
  renameSync(copy, file);
}

/** Returns the folder of a target's standard library, which may be missing. */
function librariesOf(target) {
  return execFileSync('rustc', ['--print', 'target-libdir', '--target', target], { cwd: native, encoding: 'utf8' }).trim();
}

/**
 * Builds the addon for musl, with musl-gcc. Debian has no libgcc_s for musl, so the unwinder of
 * Rust's own musl target takes its place in the addon.
 */
function buildForMusl() {
  const target = `${{ x64: 'x86_64', arm64: 'aarch64' }[arch]}-unknown-linux-musl`;
  const variable = `CARGO_TARGET_${target.toUpperCase().replaceAll('-', '_')}`;
  const unwinder = mkdtempSync(join(tmpdir(), 'navlocks-musl-'));
  symlinkSync(join(librariesOf(target), 'self-contained', 'libunwind.a'), join(unwinder, 'libgcc_s.a'));
  build('navlocks.musl.node', /\.so$/, ['--release', '--target', target], {
    [`${variable}_LINKER`]: 'musl-gcc',
    [`${variable}_RUSTFLAGS`]: `-C target-feature=-crt-static -L native=${unwinder}`,
  });
  rmSync(unwinder, { recursive: true });
}

if (process.argv.includes('--musl')) {
  buildForMusl();
  process.exit();
}
build('navlocks.node', /\.(so|dylib|dll)$/, ['--release']);
if (existsSync(librariesOf(TARGET))) {
  build('navlocks.wasm', /\.wasm$/, ['--profile', 'wasm', '--target', TARGET]);
} else {
  rmSync(join(native, 'navlocks.wasm'), { force: true });
  console.warn(`The package is built without its WebAssembly engine: rustup target add ${TARGET}`);
}
