// The packed package, installed from its tarballs, in runtimes, compilers, test runners and
// bundlers. `./test` uses the tools that it has anyway, `./test soak` all of them.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { connect } from 'navlocks';
import { nameOf, PLATFORMS } from '../../native/platforms.js';
import { Browsers, soakedKinds } from '../browser/browsers.js';
import { startPages } from '../browser/pages.js';
import { command, scratch, Service } from '../support/service.js';

const source = fileURLToPath(new URL('../..', import.meta.url));
const packages = scratch();
const project = scratch();
const tool = (path) => join(source, path);

/** The reason why tests with more tools are skipped; false if they run. */
const skipped = process.env.NAVLOCKS_SOAK ? false : './test soak runs it';

/** Programs are not part of this test run: they report by exit status and output. */
const { NODE_TEST_CONTEXT, NAVLOCKS_BIN, ...environment } = process.env;

async function run(program, given, { env, ...options } = {}) {
  const settings = { cwd: project, timeout: 120_000, ...options, env: { ...environment, ...env } };
  const { stdout } = await promisify(execFile)(program, given, settings).catch((error) => {
    throw new Error(`${error.message}\n${error.stdout}\n${error.stderr}`);
  });
  return stdout.trim();
}

/** Creates a project and installs these tarballs. */
async function install(folder, tarballs, ...given) {
  writeFileSync(join(folder, 'package.json'), '{ "name": "project", "private": true }');
  const paths = readdirSync(packages).filter((name) => name.endsWith('.tgz') && tarballs.test(name));
  await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', ...given, ...paths.map((name) => join(packages, name))], { cwd: folder });
}

/** Writes a file of the project. */
function write(name, text) {
  mkdirSync(dirname(join(project, name)), { recursive: true });
  writeFileSync(join(project, name), text);
  return join(project, name);
}

let service;
let connection;

before(async () => {
  service = await Service.start();
  // An idle service would end.
  connection = await connect(service.unix);
  await run(process.execPath, [tool('scripts/build-packages.js'), packages, command]);
  await install(project, /./);
});

after(async () => {
  await connection.close();
  await service.kill();
});

// ---- the packages themselves

test('navlocks is plain JavaScript, and the platform package has the stripped addon and command', () => {
  const files = (folder) => readdirSync(join(project, 'node_modules', folder), { recursive: true }).map(String);
  assert.deepEqual(files('navlocks').filter((name) => /\.(node|so)$/.test(name)), []);
  const { optionalDependencies, version, private: isPrivate } = JSON.parse(readFileSync(join(project, 'node_modules/navlocks/package.json'), 'utf8'));
  assert.deepEqual(optionalDependencies, Object.fromEntries(PLATFORMS.map((known) => [`@navlocks/${nameOf(known)}`, version])));
  assert.equal(isPrivate, undefined);
  const [own] = readdirSync(join(project, 'node_modules/@navlocks'));
  for (const name of ['navlocks.node', 'bin/navlocks', 'LICENSE-MIT', 'LICENSE-APACHE']) assert.ok(files(`@navlocks/${own}`).includes(name), name);
  for (const name of ['LICENSE-MIT', 'LICENSE-APACHE', 'README.md']) assert.ok(files('navlocks').includes(name), name);
  assert.equal(files('navlocks').includes('native/navlocks.wasm'), existsSync(tool('native/navlocks.wasm')));
  const addon = join(project, 'node_modules/@navlocks', own, 'navlocks.node');
  assert.ok(statSync(addon).size < 1_500_000, `${statSync(addon).size} bytes`);
  assert.equal(readFileSync(addon).includes('\0.symtab\0'), false);
});

test('every link of the packed pages leads to a packed page or to the web', () => {
  const root = join(project, 'node_modules/navlocks');
  const pages = readdirSync(root, { recursive: true }).map(String).filter((name) => name.endsWith('.md'));
  assert.ok(pages.length > 4, `${pages}`);
  for (const page of pages.filter((name) => !/(wire|security|peers)\.md$/.test(name))) {
    for (const [, link] of readFileSync(join(root, page), 'utf8').replaceAll(/^```[^]*?^```/gm, '').matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
      if (!/^https?:/.test(link)) assert.ok(existsSync(join(root, dirname(page), link)), `${page}: ${link}`);
    }
  }
});

const hasWasm = existsSync(tool('native/navlocks.wasm'));

test('without the platform package WebAssembly grants the locks, and errors of the addon name that package', async () => {
  const folder = scratch();
  await install(folder, /^navlocks-\d/, '--omit=optional');
  const program = `
    import { connect, locks } from 'navlocks';
    import { LockManager } from 'navlocks/browser';
    const remote = await connect(process.argv[1]);
    console.log(await remote.request('a', (lock) => lock.name), LockManager.name);
    await remote.close();
    await locks.request('b', (lock) => console.log(lock.name)).catch(({ name, message }) => console.log(name, message));
  `;
  const start = async (engine) => (await run(process.execPath, ['--input-type=module', '--eval', program, service.unix], { cwd: folder, env: { NAVLOCKS_ENGINE: engine } })).split('\n');
  assert.deepEqual((await start(''))[1], hasWasm ? 'b' : (await start('native'))[1]);
  const [first, second] = await start('native');
  assert.equal(first, 'a LockManager');
  assert.match(second, /^NotSupportedError the native addon of navlocks is missing: @navlocks\/.*-x64.* is not installed/);
  await assert.rejects(run(join(folder, 'node_modules/.bin/navlocks'), ['--version'], { cwd: folder }), /navlocks: the command is missing: @navlocks\//);
});

test('npx navlocks runs the command, with its exit codes and signals', async () => {
  const npx = ['--no', 'navlocks', '--'];
  assert.match(await run('npx', [...npx, '--version']), /^navlocks \d/);
  const env = { NAVLOCKS_URL: service.unix };
  assert.equal(await run('npx', [...npx, 'run', 'job', '--', 'sh', '-c', 'test -n "$NAVLOCKS_REQUEST" && echo ran'], { env }), 'ran');
  // One Node without execve(), and one with it.
  for (const node of [process.execPath, tool('peers/node_modules/.bin/node')]) {
    const run3 = promisify(execFile)(node, [join(project, 'node_modules/navlocks/bin/navlocks.js'), 'run', 'job', '--', 'sh', '-c', 'exit 3'], { env: { ...environment, ...env } });
    await assert.rejects(run3, { code: 3, stderr: '' });
    const killed = promisify(execFile)(node, [join(project, 'node_modules/navlocks/bin/navlocks.js'), 'run', 'job', '--', 'sh', '-c', 'kill -TERM $PPID; exec sleep 60'], { env: { ...environment, ...env } });
    await assert.rejects(killed, ({ code, signal }) => signal === 'SIGTERM' || code === 143);
  }
});

test('connect({ start: true }) starts the command of the package', async () => {
  const folder = scratch();
  const program = `
    import { connect } from 'navlocks';
    const locks = await connect({ start: true });
    console.log(await locks.request('a', (lock) => lock.name));
    await locks.close();
  `;
  const env = { NAVLOCKS_DIR: folder, PATH: dirname(process.execPath) };
  assert.equal(await run(process.execPath, ['--input-type=module', '--eval', program], { env }), 'a');
  await run(join(project, 'node_modules/.bin/navlocks'), ['stop', '--force'], { env: { NAVLOCKS_DIR: folder } });
});

// ---- runtimes

const PROGRAM = `
  async function main({ connect, install, Lock, locks, uninstall }, { lineageOf }, browser) {
    const results = [await locks.request('a', (lock) => lock instanceof Lock && lock.name)];
    const remote = await connect(process.env.SERVICE);
    const events = remote.events();
    results.push(await remote.request('b', (lock) => lock.held), (await events.next()).value.type);
    await events.return();
    results.push(typeof lineageOf(remote).acquire, browser.LockManager.name, remote.connection.state);
    await remote.close();
    const manager = install(globalThis, { url: process.env.SERVICE });
    results.push(await manager.request('c', (lock) => lock.name), navigator.locks === manager);
    await uninstall();
    console.log(results.join());
  }
`;
const RESULT = 'a,true,requested,function,LockManager,connected,c,true';

const ESM = `
  import * as navlocks from 'navlocks';
  import * as lineage from 'navlocks/lineage';
  import * as browser from 'navlocks/browser';
  import process from 'node:process';
  ${PROGRAM}
  await main(navlocks, lineage, browser);
`;
const CJS = `
  ${PROGRAM}
  main(require('navlocks'), require('navlocks/lineage'), require('navlocks/browser'));
`;

const RUNTIMES = [
  { name: 'this Node', program: process.execPath },
  { name: 'the newest Node', program: tool('peers/node_modules/.bin/node') },
  { name: 'Deno', program: tool('peers/node_modules/.bin/deno'), given: ['run', '--allow-all', '--quiet'] },
  ...[20, 22, 24].map((version) => ({ name: `Node ${version}`, program: tool(`matrix/node_modules/node-${version}/bin/node`), skip: skipped })),
  { name: 'Bun', program: tool('matrix/node_modules/bun/bin/bun.exe'), skip: skipped },
];

for (const { name, program, given = [], skip } of RUNTIMES) {
  for (const [kind, file, text] of [['ES modules', 'program.mjs', ESM], ['CommonJS', 'program.cjs', CJS]]) {
    test(`${name}, ${kind}`, { skip }, async () => {
      assert.equal(await run(program, [...given, write(file, text)], { env: { SERVICE: service.unix } }), RESULT);
    });
  }
}

/** A worker that ends while it holds a lock, for which the main thread waits. */
const WORKERS = `
  import { locks } from 'navlocks';
  import { Worker } from 'node:worker_threads';
  import process from 'node:process';
  const code = "import { locks } from 'navlocks'; import { parentPort } from 'node:worker_threads';"
    + "locks.request('a', () => { parentPort.postMessage('held'); return new Promise(() => {}); }).catch(({ name, message }) => parentPort.postMessage(name + ' ' + message));"
    + "setInterval(() => {}, 1000);";
  const worker = new Worker(new URL('data:text/javascript,' + encodeURIComponent(code.replaceAll('navlocks', import.meta.resolve('navlocks')))));
  worker.once('message', async (message) => {
    console.log(message);
    const waiting = locks.request('a', () => console.log('granted'));
    await worker.terminate();
    await waiting;
    process.exit();
  });
`;

for (const { name, program, given = [], skip } of RUNTIMES) {
  test(`${name}, the WebAssembly engine and its workers`, { skip: skip || (hasWasm ? false : 'the package was built without it') }, async () => {
    const seen = await run(program, [...given, write('workers.mjs', WORKERS)], { env: { NAVLOCKS_ENGINE: 'wasm' } });
    const refused = 'NotSupportedError in this runtime only the main thread can use the WebAssembly engine: use it there, or connect()';
    assert.equal(seen, `${name === 'Deno' ? refused : 'held'}\ngranted`);
  });
}

test('in Node require() and import give the same objects', async () => {
  const program = `
    const required = require('navlocks');
    import('navlocks').then((imported) => console.log(required.locks === imported.locks, required.Lock === imported.Lock));
  `;
  assert.equal(await run(process.execPath, ['--eval', program]), 'true true');
});

// ---- TypeScript

const USAGE = `
  import { type LockEvent, type LockHandle, locks } from 'navlocks';
  import { connect } from 'navlocks/browser';
  import { lineageOf } from 'navlocks/lineage';

  export async function hold(): Promise<LockHandle> {
    const remote = await connect('wss://locks.example');
    lineageOf(remote);
    for await (const event of remote.events()) watch(event);
    return await locks.hold('a');
  }

  function watch(event: LockEvent): string {
    return event.type === 'gap' ? String(event.missed) : event.scope.join();
  }
`;

const COMPILERS = [
  { name: 'this TypeScript', tsc: tool('node_modules/typescript/bin/tsc') },
  ...['5.2', '5.4', '5.7', '6', '7'].map((version) => ({ name: `TypeScript ${version}`, tsc: tool(`matrix/node_modules/typescript-${version}/bin/tsc`), skip: skipped })),
];

const MODULES = [
  { resolution: 'node16', endings: ['cts', 'mts'], given: ['--module', 'node16'] },
  { resolution: 'nodenext', endings: ['cts', 'mts'], given: ['--module', 'nodenext'], isLong: true },
  { resolution: 'bundler', endings: ['ts'], given: ['--module', 'esnext', '--moduleResolution', 'bundler'] },
];

for (const { name, tsc, skip } of COMPILERS) {
  for (const { resolution, endings, given, isLong } of MODULES) {
    test(`${name}, ${resolution}, .${endings.join(' and .')}`, { skip: isLong ? skipped : skip }, async () => {
      const files = endings.map((ending) => write(`usage.${ending}`, USAGE));
      await run(process.execPath, [tsc, '--noEmit', '--strict', '--target', 'es2022', '--lib', 'es2022,dom', ...given, ...files]);
    });
  }
}

// ---- test runners

const SUITE = `
  test('locks', async () => {
    const { connect, install, Lock, locks, uninstall } = await load('navlocks');
    const { lineageOf, requestLock } = await load('navlocks/lineage');
    const { LockManager } = await load('navlocks/browser');
    expect(await locks.request('a', (lock) => lock instanceof Lock && lock.name)).toBe('a');
    expect([requestLock, LockManager].map((value) => typeof value)).toEqual(['function', 'function']);
    const remote = await connect(process.env.SERVICE);
    expect(await remote.request('a', (lock) => lock.name)).toBe('a');
    expect(typeof lineageOf(remote).acquire).toBe('function');
    await remote.close();
    const manager = install(globalThis, { url: process.env.SERVICE });
    expect(await manager.request('b', (lock) => lock.name)).toBe('b');
    await uninstall(globalThis);
  });
`;

test('jest', async () => {
  write('jest/locks.test.js', `const load = async (name) => require(name);\n${SUITE}`);
  await run(process.execPath, [tool('peers/node_modules/jest/bin/jest.js'), '--rootDir', join(project, 'jest')], { env: { SERVICE: service.unix } });
});

/** Runs vitest on a folder, with the modules of the matrix. */
async function vitest(folder, ...given) {
  const modules = join(folder, 'node_modules');
  if (!existsSync(modules)) mkdirSync(modules, { recursive: true });
  for (const name of ['vitest', 'jsdom', 'happy-dom', 'vite']) {
    if (!existsSync(join(modules, name))) symlinkSync(tool(`matrix/node_modules/${name}`), join(modules, name));
  }
  const bin = tool('matrix/node_modules/vitest/vitest.mjs');
  const node = tool('matrix/node_modules/node-24/bin/node');
  return run(node, [bin, 'run', '--root', folder, '--globals', ...given], { cwd: folder, env: { SERVICE: service.unix, NO_COLOR: '1' } });
}

for (const environment of ['node', 'jsdom', 'happy-dom']) {
  test(`vitest, ${environment}`, { skip: skipped }, async () => {
    write(`vitest-${environment}/locks.test.js`, `const load = (name) => import(name);\n${SUITE}`);
    await vitest(join(project, `vitest-${environment}`), '--environment', environment);
  });
}

// ---- bundlers

const PAGE = `
  import { connect, LockManager, locks } from 'navlocks';
  import { lineageOf } from 'navlocks/lineage';

  globalThis.result = (async () => {
    const remote = await connect(new URL(location).searchParams.get('service'));
    const refused = await locks.request('a', () => {}).catch(({ name }) => name);
    const name = await remote.request('a', { timeout: 60_000 }, (lock) => lock.constructor.name);
    await remote.close();
    return [name, remote instanceof LockManager, LockManager.name, typeof lineageOf(remote).acquire, refused].join();
  })();
`;

const BUNDLERS = [
  {
    name: 'esbuild',
    async bundle(entry, outfile) {
      const { build } = await import('esbuild');
      await build({ entryPoints: [entry], outfile, bundle: true, minify: true, format: 'esm', platform: 'browser', logLevel: 'error' });
    },
  },
  {
    name: 'rollup',
    skip: skipped,
    async bundle(entry, file) {
      const { rollup } = await import(tool('matrix/node_modules/rollup/dist/es/rollup.js'));
      const { default: resolve } = await import(tool('matrix/node_modules/@rollup/plugin-node-resolve/dist/es/index.js'));
      const { default: terser } = await import(tool('matrix/node_modules/@rollup/plugin-terser/dist/es/index.js'));
      const made = await rollup({ input: entry, plugins: [resolve({ browser: true }), terser()], onwarn: (warning) => assert.fail(warning.message) });
      await made.write({ file, format: 'es' });
    },
  },
  {
    name: 'vite',
    skip: skipped,
    async bundle(entry, file) {
      const node = tool('matrix/node_modules/node-24/bin/node');
      const config = { root: dirname(entry), logLevel: 'error', build: { outDir: dirname(file), emptyOutDir: false, minify: true, lib: { entry, formats: ['es'], fileName: () => file.split('/').pop() } } };
      const program = `import { build } from ${JSON.stringify(tool('matrix/node_modules/vite/dist/node/index.js'))}; await build(${JSON.stringify(config).replace(/"fileName":[^,}]*/, '')});`;
      const named = program.replace('"formats":["es"]', `"formats":["es"],"fileName":() => ${JSON.stringify(file.split('/').pop())}`);
      await run(node, ['--input-type=module', '--eval', named]);
    },
  },
  {
    name: 'webpack',
    skip: skipped,
    async bundle(entry, file) {
      const { default: webpack } = await import(tool('matrix/node_modules/webpack/lib/index.js'));
      const output = { path: dirname(file), filename: file.split('/').pop() };
      const compiler = webpack({ mode: 'production', target: 'web', context: project, entry, output, performance: false });
      const stats = await promisify(compiler.run.bind(compiler))();
      assert.equal(stats.hasErrors() || stats.hasWarnings(), false, stats.toString());
    },
  },
];

const browsers = soakedKinds.map((kind) => ({ kind, all: new Browsers(kind) }));
after(() => Promise.all(browsers.map(({ all }) => all.close())));

for (const { name, skip, bundle } of BUNDLERS) {
  test(`${name}, minified`, { skip }, async (t) => {
    const bundled = join(project, 'bundles', `${name}.js`);
    mkdirSync(dirname(bundled), { recursive: true });
    await bundle(write('page.js', PAGE), bundled);
    const text = readFileSync(bundled, 'utf8');
    assert.equal(/node:|require\(/.test(text), false, 'the bundle imports modules of Node');
    const site = await startPages({ '/': '<!doctype html><script type="module" src="/bundle.js"></script>', '/bundle.js': text });
    t.after(() => site.close());
    const own = await Service.start(['--allow-origin', site.origin]);
    t.after(() => own.kill());
    for (const { kind, all } of browsers) {
      await t.test(kind.name, { skip: kind.missing }, async () => {
        const page = await (await all.open()).newPage();
        await page.goto(`${site.origin}/?service=${own.tcp}`);
        assert.equal(await page.evaluate(() => globalThis.result), 'ExtendedLock,true,LockManager,function,NotSupportedError');
        await page.close();
      });
    }
  });
}

// ---- packages that use navigator.locks, by their own tests

/** Globals of jasmine and jest that the tests of these packages use. */
const SETUP = `
  import { install } from 'navlocks';
  install(globalThis);
  globalThis.expectAsync = (promise) => ({ toBeResolvedTo: async (value) => expect(await promise).toEqual(value) });
  globalThis.jest = vi;
  globalThis.window = globalThis.self = globalThis;
  globalThis.localStorage = { clear() {}, removeItem() {} };
`;

/** Copies a package of the matrix, and installs navlocks for its tests. */
function copyPackage(name) {
  const folder = join(project, `own-${name}`);
  cpSync(tool(`matrix/node_modules/${name}`), folder, { recursive: true });
  writeFileSync(join(folder, 'setup.mjs'), SETUP);
  // Retries: a timer of Node may be a millisecond early. Promises of stolen locks reject unhandled.
  const test = { globals: true, setupFiles: ['./setup.mjs'], retry: 3, dangerouslyIgnoreUnhandledErrors: true };
  writeFileSync(join(folder, 'vitest.config.mjs'), `export default ${JSON.stringify({ test })};`);
  return folder;
}

test("wa-sqlite's tests of its Web Locks pass on navlocks", { skip: skipped }, async () => {
  const folder = copyPackage('wa-sqlite');
  const output = await vitest(folder, 'test/WebLocks.test.js');
  assert.match(output, /Tests +\d\d passed/);
});

test('the tests of the polyfill navigator.locks pass on navlocks, except for its error texts and heartbeat', { skip: skipped }, async () => {
  const folder = copyPackage('navigator.locks');
  // Its tests create a manager for each test, and random names.
  writeFileSync(join(folder, 'src/polyfill.ts'), `
    export function LockManager() { return navigator.locks; }
    export const generateRandomId = () => crypto.randomUUID();
  `);
  const output = await vitest(folder, ...['held', 'ifAvailable', 'mode', 'query', 'steal', 'lock-attributes'].map((name) => `test/${name}`));
  assert.match(output, /Tests +\d\d passed/);
});
