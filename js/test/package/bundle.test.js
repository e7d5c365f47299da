// Class names survive a bundler, even beside other classes with the same names.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const resolveDir = fileURLToPath(new URL('../..', import.meta.url));

/** A program with classes of the same names beside the package. */
const PROGRAM = `
  class Lock {}
  class LockManager {}
  class LockHandle {}
  class Locks {}
  class ServiceLocks {}
  class ExtendedLock {}
  class Flag {}
  export const own = [Lock, LockManager, LockHandle, Locks, ServiceLocks, ExtendedLock, Flag];
  // Imported by package name: a bundle for browsers contains no module of Node.
  export * as lineage from 'navlocks/lineage';
  export * as browser from 'navlocks/browser';
  export { createInterfaces } from './standard/locks.js';
  export { createExtended } from './extended/extended.js';
`;

for (const minify of [false, true]) {
  test(`F13 classes keep their names and tags when they are bundled${minify ? ' and minified' : ''}`, async () => {
    const stdin = { contents: PROGRAM, resolveDir };
    const { outputFiles } = await build({ stdin, bundle: true, minify, format: 'esm', platform: 'browser', write: false });
    const source = Buffer.from(outputFiles[0].contents).toString('base64');
    const { browser, createExtended, createInterfaces, lineage } = await import(`data:text/javascript;base64,${source}`);
    const tag = ({ prototype }) => Object.prototype.toString.call(prototype);
    const { LockManager, Lock, LockHandle } = browser;
    assert.deepEqual([LockManager.name, Lock.name, LockHandle.name], ['LockManager', 'Lock', 'LockHandle']);
    assert.deepEqual([tag(LockManager), tag(Lock), tag(LockHandle)], ['[object LockManager]', '[object Lock]', '[object Lock]']);
    assert.deepEqual([browser.ExtendedLock.name, lineage.Lock.name, lineage.Flag.name], ['ExtendedLock', 'Lock', 'Flag']);
    assert.deepEqual([tag(lineage.Lock), tag(lineage.Flag)], ['[object Lock]', '[object Flag]']);
    const { createLocks, createServiceLocks } = createExtended(createInterfaces(globalThis));
    const names = [createLocks({}), createServiceLocks({})].map(({ constructor }) => constructor.name);
    assert.deepEqual(names, ['Locks', 'ServiceLocks']);
    // The same getters and methods, by name and by length.
    const members = ({ prototype }) => Object.entries(Object.getOwnPropertyDescriptors(prototype)).map(([key, { value, get }]) => [key, get?.name ?? value.name, get?.length ?? value.length]);
    assert.deepEqual(members(LockManager), [['constructor', 'LockManager', 0], ['request', 'request', 2], ['query', 'query', 0]]);
  });
}
