// Builds and packs the npm packages for publishing: `navlocks` in JavaScript and WebAssembly, and
// this platform's package with addon and command.
//
//   node scripts/build-packages.js FOLDER [COMMAND]
//   node scripts/build-packages.js --musl FOLDER COMMAND
//
// `npm run build` must have built the engine. COMMAND is a built command `navlocks`; without it, a
// release is built. With `--musl` it is a static one, and the package is that of musl, of which
// `node scripts/build.js --musl` must have built the addon.

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { libc, nameOf, packageOf, PLATFORMS } from '../native/platforms.js';
import { shipped } from './shipped.js';

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(here);
const isForMusl = process.argv.includes('--musl');
const [target, given] = process.argv.slice(2).filter((argument) => argument !== '--musl');
if (target === undefined) throw new Error('name the folder for the packages: node scripts/build-packages.js FOLDER [COMMAND]');
const folder = resolve(target);
const manifest = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'));
const LICENSES = ['LICENSE-MIT', 'LICENSE-APACHE'];
const WASM = join('native', 'navlocks.wasm');
/** Pages that the README links to. */
const PAGES = ['javascript', 'peers.md', 'security.md', 'wire.md'];

const run = (command, ...given) => execFileSync(command, given, { cwd: here, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

function write(path, value) {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}

/** Creates the folder of a package, with the licences alone. */
function begin(name) {
  const place = join(folder, name);
  rmSync(place, { recursive: true, force: true });
  mkdirSync(join(place, 'bin'), { recursive: true });
  for (const license of LICENSES) cpSync(join(root, license), join(place, license));
  return place;
}

function buildCommand() {
  run('cargo', 'build', '--release', '--locked', '--package', 'navlocks-cli');
  const { target_directory } = JSON.parse(run('cargo', 'metadata', '--format-version=1', '--no-deps'));
  return join(target_directory, 'release', 'navlocks');
}

/** Copies a program without its debug information. */
function copyStripped(from, to) {
  cpSync(from, to);
  run('strip', '--strip-all', to);
}

function buildPlatform() {
  const own = { os: process.platform, cpu: process.arch, libc: isForMusl ? 'musl' : libc() };
  const known = PLATFORMS.find((each) => nameOf(each) === nameOf(own));
  if (known === undefined) throw new Error(`${nameOf(own)} has no package: the platforms are ${PLATFORMS.map(nameOf).join(', ')}`);
  const place = begin(nameOf(known));
  copyStripped(join(here, 'native', isForMusl ? 'navlocks.musl.node' : 'navlocks.node'), join(place, 'navlocks.node'));
  copyStripped(given ?? buildCommand(), join(place, 'bin', 'navlocks'));
  const { version, license, engines, repository } = manifest;
  const description = `The native addon and the command of navlocks for ${nameOf(known)}. Installed by the package navlocks.`;
  const limits = Object.fromEntries(Object.entries(known).map(([key, value]) => [key, [value]]));
  write(join(place, 'package.json'), { name: packageOf(known), version, description, license, repository, engines, ...limits, preferUnplugged: true });
  writeFileSync(join(place, 'README.md'), `# ${packageOf(known)}\n\n${description}\n`);
  return place;
}

function buildMain() {
  run(process.execPath, 'scripts/build-cjs.js');
  const place = begin('navlocks');
  const wasm = existsSync(join(here, WASM)) ? [WASM] : [];
  if (wasm.length === 0) console.warn('The package has no WebAssembly engine: npm run build says why.');
  for (const name of [...shipped(here), ...wasm, 'cjs']) cpSync(join(here, name), join(place, name), { recursive: true });
  cpSync(join(here, 'bin', 'navlocks.js'), join(place, 'bin', 'navlocks.js'));
  for (const name of PAGES) cpSync(join(root, 'docs', name), join(place, 'docs', name), { recursive: true });
  // The pages are beside the README in a package, and above it in a checkout.
  const readme = readFileSync(join(here, 'README.md'), 'utf8');
  writeFileSync(join(place, 'README.md'), readme.replaceAll('](../docs/', '](docs/'));
  const { version, private: _, scripts, devDependencies, ...published } = manifest;
  const optionalDependencies = Object.fromEntries(PLATFORMS.map((known) => [packageOf(known), version]));
  write(join(place, 'package.json'), { version, ...published, optionalDependencies });
  return place;
}

for (const place of isForMusl ? [buildPlatform()] : [buildPlatform(), buildMain()]) run('npm', 'pack', '--silent', '--pack-destination', folder, place);
