// The packed package, unpacked into an empty project: CommonJS in jest, in Node and in TypeScript.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { scratch, Service } from './service.js';

const source = fileURLToPath(new URL('..', import.meta.url));
const modules = join(source, 'node_modules');
const project = scratch();

async function run(command, given, options = {}) {
  // Not a part of this test run: it reports by its exit status.
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const { stdout } = await promisify(execFile)(command, given, { cwd: project, timeout: 80_000, ...options, env: { ...env, ...options.env } }).catch((error) => {
    throw new Error(`${error.message}\n${error.stdout}\n${error.stderr}`);
  });
  return stdout.trim();
}

before(async () => {
  const installed = join(project, 'node_modules', 'navlocks');
  mkdirSync(installed, { recursive: true });
  symlinkSync(join(modules, 'ws'), join(project, 'node_modules', 'ws'));
  await run('npm', ['pack', '--pack-destination', project], { cwd: source });
  const [tarball] = readdirSync(project).filter((name) => name.endsWith('.tgz'));
  await run('tar', ['xzf', tarball, '-C', installed, '--strip-components=1']);
  writeFileSync(join(project, 'package.json'), '{ "name": "project", "private": true }');
});

test('jest loads every entry point by require(), and the locks of a process and of a service work', async (t) => {
  const service = await Service.start();
  t.after(() => service.kill());
  writeFileSync(join(project, 'locks.test.js'), `
    const { connect, install, Lock, locks } = require('navlocks');
    const { lineageOf, requestLock } = require('navlocks/lineage');
    const { LockManager } = require('navlocks/browser');

    test('locks', async () => {
      expect(await locks.request('a', (lock) => lock instanceof Lock && lock.name)).toBe('a');
      expect([requestLock, LockManager].map((value) => typeof value)).toEqual(['function', 'function']);
      const remote = await connect(process.env.SERVICE);
      expect(await remote.request('a', (lock) => lock.name)).toBe('a');
      expect(typeof lineageOf(remote).acquire).toBe('function');
      await remote.close();
      const manager = install(globalThis, { url: process.env.SERVICE });
      expect(await manager.request('b', (lock) => lock.name)).toBe('b');
    });
  `);
  await run(process.execPath, [join(source, 'peers/node_modules/jest/bin/jest.js'), '--rootDir', project], { env: { SERVICE: service.unix } });
});

test('in Node require() and import give the same objects', async () => {
  const program = `
    const required = require('navlocks');
    import('navlocks').then((imported) => console.log(required.locks === imported.locks, required.Lock === imported.Lock));
  `;
  assert.equal(await run(process.execPath, ['--eval', program]), 'true true');
});

for (const module of ['node16', 'nodenext']) {
  for (const ending of ['cts', 'mts']) {
    test(`TypeScript with module ${module} reads the types from a .${ending} file`, async () => {
      writeFileSync(join(project, `usage.${ending}`), `
        import { type LockHandle, locks } from 'navlocks';
        import { connect } from 'navlocks/browser';
        import { lineageOf } from 'navlocks/lineage';

        export async function hold(): Promise<LockHandle> {
          lineageOf(await connect('wss://locks.example'));
          return await locks.hold('a');
        }
      `);
      const given = ['--noEmit', '--strict', '--target', 'es2022', '--lib', 'es2022,dom', '--module', module, `usage.${ending}`];
      await run(process.execPath, [join(modules, 'typescript/bin/tsc'), ...given]);
    });
  }
}
