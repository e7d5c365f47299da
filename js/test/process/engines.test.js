// The two engines of the package: the native addon, and WebAssembly in the main thread.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const file = fileURLToPath(new URL('../../native/navlocks.wasm', import.meta.url));
const url = import.meta.resolve('navlocks');
const skip = existsSync(file) ? false : 'the package was built without its WebAssembly engine';

/** Runs a program whose first thread is a module, on an engine. Returns its output. */
async function run(engine, text) {
  const env = { ...process.env, NAVLOCKS_ENGINE: engine };
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', text], { env, timeout: 60_000 });
  return stdout.trim();
}

/**
 * Returns code that starts a worker with this module, where `locks` is that of the package, and the
 * text of options.
 */
function startWorker(text, options = '{}') {
  const code = `import { parentPort, workerData } from 'node:worker_threads'; import { locks } from '${url}'; ${text}`;
  return `new Worker(new URL(${JSON.stringify(`data:text/javascript,${encodeURIComponent(code)}`)}), ${options})`;
}

const IMPORTS = `import { once } from 'node:events'; import { Worker } from 'node:worker_threads';`;

test('the WebAssembly module imports nothing', { skip }, () => {
  const module = new WebAssembly.Module(readFileSync(file));
  assert.deepEqual(WebAssembly.Module.imports(module), []);
  assert.ok(readFileSync(file).length < 400_000);
});

test('an unknown engine is refused, with the remedy', async () => {
  const program = `const { locks } = await import('${url}'); await locks.query().catch(({ name, message }) => console.log(name, message));`;
  assert.equal(await run('other', program), "NotSupportedError NAVLOCKS_ENGINE is 'other': set it to 'native' or 'wasm', or leave it out");
});

test('a worker whose main thread has not loaded the package gets the remedy, and locks after it', { skip }, async () => {
  const worker = startWorker(`
    const say = ({ name, message }) => parentPort.postMessage(name + ' ' + message);
    await locks.request('a', () => {}).catch(say);
    await locks.query().catch(say);
    parentPort.postMessage('ready');
    await new Promise((resolve) => parentPort.once('message', resolve));
    parentPort.postMessage(await locks.request('a', { ifAvailable: true }, (lock) => lock?.name ?? 'held by the main thread'));
    parentPort.close();
  `);
  // A listener of the program itself, which throws.
  const seen = await run('wasm', `${IMPORTS}
    process.on('workerMessage', () => { throw new Error('not for me'); });
    const worker = ${worker};
    worker.on('message', (message) => console.log(message));
    while ((await once(worker, 'message'))[0] !== 'ready');
    const { locks } = await import('${url}');
    await locks.hold('a');
    worker.postMessage('go');
    await once(worker, 'exit');
  `);
  const [request, query, , later] = seen.split('\n');
  assert.match(request, /^NotSupportedError the main thread has not loaded navlocks, .*: import 'navlocks' in the main thread/);
  assert.equal(query, request);
  assert.equal(later, 'held by the main thread');
});

for (const [worker, main] of [['native', 'wasm'], ['wasm', 'native']]) {
  test(`the engine of a worker that loads the package first, ${worker}, is that of a main thread with ${main}`, { skip }, async () => {
    const started = startWorker(`
      parentPort.postMessage('ready');
      await new Promise((resolve) => parentPort.once('message', resolve));
      parentPort.postMessage(await locks.request('a', { ifAvailable: true }, String));
      parentPort.close();
    `, `{ env: { ...process.env, NAVLOCKS_ENGINE: '${worker}' } }`);
    const seen = await run(main, `${IMPORTS}
      const worker = ${started};
      await once(worker, 'message');
      const { locks } = await import('${url}');
      await locks.hold('a');
      worker.postMessage('go');
      console.log((await once(worker, 'message'))[0]);
    `);
    assert.equal(seen, 'null');
  });
}

test('a worker within a worker shares the locks of the main thread', { skip }, async () => {
  const inner = startWorker(`parentPort.postMessage(await locks.request('a', { ifAvailable: true }, String)); parentPort.close();`);
  const outer = startWorker(`
    const { Worker } = await import('node:worker_threads');
    ${inner}.on('message', (message) => parentPort.postMessage(message));
  `);
  const seen = await run('wasm', `${IMPORTS}
    const { locks } = await import('${url}');
    await locks.hold('a');
    console.log((await once(${outer}, 'message'))[0]);
  `);
  assert.equal(seen, 'null');
});

for (const engine of ['native', 'wasm']) {
  const options = { skip: engine === 'wasm' && skip };

  test(`${engine}: a terminated worker loses its locks and its places, and other threads are granted`, options, async () => {
    const holder = startWorker(`
      locks.request('a', () => new Promise(() => {}));
      locks.request('b', () => new Promise(() => {}));
      locks.request('c', () => parentPort.postMessage('never'));
      await locks.query();
      setInterval(() => {}, 1000);
      parentPort.postMessage('ready');
    `);
    const waiter = startWorker(`
      const waiting = locks.request('b', () => 'worker');
      await locks.query();
      parentPort.postMessage('ready');
      parentPort.postMessage(await waiting);
    `);
    const seen = await run(engine, `${IMPORTS}
      const { locks } = await import('${url}');
      const held = await locks.hold('c');
      const holder = ${holder};
      await once(holder, 'message');
      const waiter = ${waiter};
      await once(waiter, 'message');
      const waiting = locks.request('a', () => 'main');
      const granted = once(waiter, 'message');
      await holder.terminate();
      console.log(await waiting, ...(await granted));
      held.release();
      console.log(await locks.request('c', { timeout: 10_000 }, () => 'free'));
    `);
    assert.equal(seen, 'main worker\nfree');
  });

  test(`${engine}: events of all threads reach a worker, and those that did not fit are counted`, options, async () => {
    const reader = startWorker(`
      const events = locks.events({ capacity: 4 });
      await locks.query();
      parentPort.postMessage('ready');
      await new Promise((resolve) => parentPort.once('message', resolve));
      const seen = [];
      while (seen.at(-1) !== 'last') {
        const { value: { type, scope, missed } } = await events.next();
        seen.push(type === 'gap' ? missed > 0 : type === 'released' ? scope[0] : type);
      }
      parentPort.postMessage([seen.includes(true), seen.at(-1)].join());
      parentPort.close();
    `);
    const seen = await run(engine, `${IMPORTS}
      const { locks } = await import('${url}');
      const reader = ${reader};
      await once(reader, 'message');
      for (let number = 0; number < 20; number++) await locks.request('a', { tag: 'T' }, () => {});
      await locks.request('last', () => {});
      reader.postMessage('go');
      console.log((await once(reader, 'message'))[0]);
    `);
    assert.equal(seen, 'true,last');
  });
}

test('a query of a thread that was blocked keeps the grant that came meanwhile', async () => {
  const holder = startWorker(`
    const lock = await locks.hold('a');
    parentPort.postMessage('ready');
    Atomics.wait(workerData, 0, 0);
    lock.release();
    Atomics.store(workerData, 1, 1);
    Atomics.notify(workerData, 1);
  `, '{ workerData: shared }');
  const seen = await run('native', `${IMPORTS}
    const { locks } = await import('${url}');
    const shared = new Int32Array(new SharedArrayBuffer(8));
    const holder = ${holder};
    await once(holder, 'message');
    const waiting = locks.request('a', () => 'granted');
    Atomics.store(shared, 0, 1);
    Atomics.notify(shared, 0);
    Atomics.wait(shared, 1, 0);
    locks.query();
    await locks.request('b', () => {});
    console.log(await waiting);
  `);
  assert.equal(seen, 'granted');
});
