// Several copies of the package in one process, and a copy without its addon: real folders, real
// processes.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { shipped } from '../scripts/shipped.js';
import { scratch, Service } from './service.js';

const source = fileURLToPath(new URL('..', import.meta.url));

/**
 * Copies the package into a folder, with the real addon, without one (`none`), or with this text.
 */
function copyPackage(addon = 'real') {
  const folder = join(scratch(), 'navlocks');
  mkdirSync(join(folder, 'native'), { recursive: true });
  for (const name of [...shipped(source), 'package.json']) cpSync(join(source, name), join(folder, name));
  symlinkSync(join(source, 'node_modules'), join(folder, 'node_modules'));
  if (addon === 'real') cpSync(join(source, 'native/navlocks.node'), join(folder, 'native/navlocks.node'));
  else if (addon !== 'none') writeFileSync(join(folder, 'native/navlocks.node'), addon);
  return { folder, url: pathToFileURL(join(folder, 'index.js')).href };
}

async function run(text, ...given) {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', text, ...given], { timeout: 60_000 });
  return stdout.trim();
}

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

test('a copy with another native interface is refused, and the error names the first copy', async () => {
  const [one, other] = [copyPackage(), copyPackage()];
  const seen = await run(`
    import { setEnvironmentData } from 'node:worker_threads';
    setEnvironmentData('navlocks.addon', { path: '/the/first/copy', interface: 0 });
    const { locks } = await import(process.argv[1]);
    await locks.query().catch((error) => console.log(error.name, error.message));
  `, one.url, other.url);
  assert.match(seen, /^NotSupportedError another version of navlocks .* from \/the\/first\/copy: use one version/);
});

for (const [what, addon] of [['is missing', 'none'], ['cannot be loaded', 'no library']]) {
  test(`an addon that ${what}: errors of locks say what to do, and connect() works`, async (t) => {
    const service = await Service.start();
    t.after(() => service.kill());
    const [problem, ...others] = (await run(`
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
    `, copyPackage(addon).url, service.unix)).split('\n');
    assert.match(problem, new RegExp(`^the native addon of navlocks ${what}.*connect\\(\\)`));
    assert.deepEqual(others, [Array(5).fill('NotSupportedError').join(), 'a']);
  });
}
