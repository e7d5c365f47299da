// The package for musl, which is built on glibc, and run in the Node that NAVLOCKS_MUSL_NODE names.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { command, scratch } from '../support/service.js';
import { soaks } from '../support/soak.js';

const { NAVLOCKS_MUSL_NODE: node } = process.env;
const packages = scratch();
const script = (name) => fileURLToPath(new URL(`../../scripts/${name}`, import.meta.url));
const run = (program, ...given) => execFileSync(program, given, { encoding: 'utf8', env: { ...process.env, NAVLOCKS_ENGINE: 'native' } });

function hasCompiler() {
  try {
    return run('musl-gcc', '--version') !== '';
  } catch {
    return false;
  }
}

const skip = !soaks ? './test soak runs it' : !hasCompiler() && 'there is no musl-gcc here: install musl-tools';

test('the addon for musl needs no library but the libc', { skip }, () => {
  run(process.execPath, script('build.js'), '--musl');
  run(process.execPath, script('build-packages.js'), '--musl', packages, command);
  const [name] = readdirSync(packages).filter((file) => /musl.*\.tgz$/.test(file));
  unpack(name, `@navlocks/linux-${process.arch}-musl`);
  const addon = join(packages, `node_modules/@navlocks/linux-${process.arch}-musl/navlocks.node`);
  const needed = run('readelf', '--dynamic', addon).match(/(?<=\(NEEDED\).*\[)[^\]]*/g);
  assert.deepEqual(needed, ['libc.so']);
});

test('locks of a process and of its worker work on musl', { skip: skip || (node === undefined && 'NAVLOCKS_MUSL_NODE names no Node for musl') }, () => {
  run(process.execPath, script('build-packages.js'), packages, command);
  const [name] = readdirSync(packages).filter((file) => /^navlocks-[0-9].*\.tgz$/.test(file));
  unpack(name, 'navlocks');
  // An older package manager installs the packages of all platforms.
  const [other] = readdirSync(packages).filter((file) => /glibc.*\.tgz$/.test(file));
  unpack(other, `@navlocks/linux-${process.arch}-glibc`);
  const program = join(packages, 'program.mjs');
  writeFileSync(program, `
    import { isMainThread, Worker } from 'node:worker_threads';
    import { locks } from 'navlocks';
    if (isMainThread) {
      const lock = await locks.hold('a');
      const worker = new Worker(new URL(import.meta.url));
      for await (const { type } of locks.events()) if (type === 'requested') break;
      lock.release();
      worker.on('exit', (code) => console.log(code, process.report.getReport().header.glibcVersionRuntime));
    } else {
      await locks.request('a', () => {});
    }
  `);
  assert.equal(run(node, program), '0 undefined\n');
});

function unpack(archive, name) {
  const folder = join(packages, 'node_modules', name);
  mkdirSync(folder, { recursive: true });
  run('tar', '--extract', '--file', join(packages, archive), '--directory', folder, '--strip-components=1');
}
