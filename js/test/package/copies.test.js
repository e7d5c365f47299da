// Several copies of the package in one process, and copies without an engine: real folders, real
// processes.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { shipped } from '../../scripts/shipped.js';
import { scratch, Service } from '../support/service.js';

const source = fileURLToPath(new URL('../..', import.meta.url));
const wasm = join(source, 'native/navlocks.wasm');

/**
 * Copies the package into a folder, with the real addon, without one (`none`), or with this text;
 * with the engine in WebAssembly if there is one, or without it.
 */
function copyPackage(addon = 'real', hasWasm = existsSync(wasm)) {
  const folder = join(scratch(), 'navlocks');
  mkdirSync(join(folder, 'native'), { recursive: true });
  for (const name of [...shipped(source), 'package.json']) cpSync(join(source, name), join(folder, name));
  symlinkSync(join(source, 'node_modules'), join(folder, 'node_modules'));
  if (addon === 'real') cpSync(join(source, 'native/navlocks.node'), join(folder, 'native/navlocks.node'));
  else if (addon !== 'none') writeFileSync(join(folder, 'native/navlocks.node'), addon);
  if (hasWasm) cpSync(wasm, join(folder, 'native/navlocks.wasm'));
  return { folder, url: pathToFileURL(join(folder, 'index.js')).href };
}

async function run(text, ...given) {
  return runWith(process.env, text, ...given);
}

async function runWith(env, text, ...given) {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', text, ...given], { env, timeout: 60_000 });
  return stdout.trim();
}

/** The package chooses its engine by itself. */
const free = { ...process.env, NAVLOCKS_ENGINE: '' };

const COUNT = `
  const [one, other] = process.argv.slice(1);
  const { Worker } = await import('node:worker_threads');
  const { locks } = await import(one);
`;

test('two copies in one thread share one lock space', async () => {
  const copies = [copyPackage(), copyPackage()].map(({ url }) => url);
  const seen = await run(`${COUNT}
    const { locks: others } = await import(other);
    await locks.request('a', async () => {
      console.log(await others.request('a', { ifAvailable: true }, String), (await others.query()).held.length);
    });
  `, ...copies);
  assert.equal(seen, 'null 1');
});

test('a worker thread with another copy shares the lock space of the thread that started it', async () => {
  const copies = [copyPackage(), copyPackage()].map(({ url }) => url);
  const seen = await run(`${COUNT}
    await locks.request('a', () => new Promise((resolve) => {
      const program = \`
        import { workerData } from 'node:worker_threads';
        const { locks } = await import(workerData);
        console.log(await locks.request('a', { ifAvailable: true }, String));
      \`;
      new Worker(program, { eval: true, workerData: other }).on('exit', resolve);
    }));
  `, ...copies);
  assert.equal(seen, 'null');
});

test('a copy with another version of the engine is refused, and the error names the first copy', async () => {
  const [one, other] = [copyPackage(), copyPackage()];
  const seen = await run(`
    import { setEnvironmentData } from 'node:worker_threads';
    setEnvironmentData('navlocks.engine', { path: '/the/first/copy', version: 0 });
    const { locks } = await import(process.argv[1]);
    await locks.query().catch((error) => console.log(error.name, error.message));
  `, one.url, other.url);
  assert.match(seen, /^NotSupportedError another version of navlocks .* from \/the\/first\/copy: use one version/);
});

for (const [what, addon] of [['is missing', 'none'], ['cannot be loaded', 'no library']]) {
  test(`an addon that ${what}, without WebAssembly: errors of locks say what to do, and connect() works`, async (t) => {
    const service = await Service.start();
    t.after(() => service.kill());
    const [problem, ...others] = (await runWith(free, `
      const [url, address] = process.argv.slice(1);
      const { connect, install, locks } = await import(url);
      const failures = await Promise.all([
        locks.request('a', () => {}).catch((error) => error),
        locks.hold('a').catch((error) => error),
        locks.query().catch((error) => error),
        locks.partition('p').inspect().catch((error) => error),
        (async () => install())().catch((error) => error),
      ]);
      console.log(failures[0].message);
      console.log(failures.map(({ name }) => name).join());
      const remote = await connect(address);
      console.log(await remote.request('a', (lock) => lock.name));
      await remote.close();
    `, copyPackage(addon, false).url, service.unix)).split('\n');
    assert.match(problem, new RegExp(`^the native addon of navlocks ${what}.*connect\\(\\)`));
    assert.deepEqual(others, [Array(5).fill('NotSupportedError').join(), 'a']);
  });
}

for (const [what, addon] of [['is missing', 'none'], ['cannot be loaded', 'no library']]) {
  test(`an addon that ${what}: WebAssembly grants the locks of all threads`, { skip: existsSync(wasm) ? false : 'there is no WebAssembly engine' }, async () => {
    const seen = await runWith(free, `${COUNT}
      await locks.request('a', () => new Promise((resolve) => {
        const program = \`
          import { workerData } from 'node:worker_threads';
          const { locks } = await import(workerData);
          console.log(await locks.request('a', { ifAvailable: true }, String));
        \`;
        new Worker(program, { eval: true, workerData: other }).on('exit', resolve);
      }));
    `, ...[copyPackage(addon), copyPackage(addon)].map(({ url }) => url));
    assert.equal(seen, 'null');
  });
}
