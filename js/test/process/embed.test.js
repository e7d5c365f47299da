// `navlocks/embed` by the example of its page, over the engine of this package, in a realm that has
// the objects of the language and little else.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import vm from 'node:vm';
import { build } from 'esbuild';
import { loadEngine } from '../../native/engine.js';
import { transportOf } from '../../native/native.js';

setFlagsFromString('--expose-gc');

const { engine: native } = loadEngine();
const page = readFileSync(new URL('../../../docs/javascript/embedding.md', import.meta.url), 'utf8');
const [, example] = /^```js\n([^]*?)^```$/m.exec(page);
const PROGRAM = `
  export * from 'navlocks/embed';
  export { runCase } from './test/conformance/bench.js';
  export { casesFor } from './test/conformance/cases.js';
`;

const program = await compile(`${PROGRAM}${example}`);
const library = await compile(PROGRAM);

/** Returns a script that defines the exports of a module as `embed`. */
async function compile(contents) {
  const stdin = { contents, resolveDir: fileURLToPath(new URL('../..', import.meta.url)) };
  const options = { bundle: true, format: 'iife', globalName: 'embed', banner: { js: '"use strict";' }, platform: 'neutral' };
  const { outputFiles } = await build({ stdin, write: false, ...options });
  return new vm.Script(outputFiles[0].text);
}

/** As in a runtime whose timer without a delay is the next turn. */
const timer = (work, delay) => (delay === undefined ? setImmediate(work) : setTimeout(work, delay));

/** All that the interfaces need beside the objects of the language, and a timer. */
const NEEDED = { DOMException, AbortSignal, setTimeout: timer };
/** Used by the cases alone. */
const OWN = { AbortController, clearInterval, clearTimeout, Event, EventTarget, gc: vm.runInNewContext('gc'), setInterval };

function createRealm(script, globals) {
  const context = vm.createContext({ ...OWN, ...globals });
  script.runInContext(context);
  return vm.runInContext('globalThis', context);
}

/** The kinds of mail and the causes of a loss, as in native.js. */
const KINDS = { 1: 'granted', 2: 'unavailable', 5: 'aborted', 6: 'lost' };
const CAUSES = ['Stolen', 'ForceReleased'];
const PARTITION = 'embedded';

/** Returns the object of the host that the example uses. */
function createEngine() {
  const answer = new Float64Array(3 + 3 * 64);
  const handle = native.open(PARTITION, 'embedded client', answer, () => deliver(native.take(handle, 0)));
  const observer = transportOf(PARTITION);

  function deliver(result) {
    for (let at = 3; at < 3 + 3 * answer[1]; at += 3) {
      const [kind, number, value] = answer.subarray(at);
      engine.onmail(KINDS[kind], number, kind > 2 ? CAUSES[value] : value);
    }
    return answer[2] === 1 ? deliver(native.take(handle, 0)) : result;
  }

  function input(call, number, ...given) {
    answer[0] = number;
    return deliver(native[call](handle, ...given));
  }

  const engine = {
    request(number, name, mode, ifAvailable, steal) {
      input('request', number, name, (ifAvailable ? 1 : steal ? 2 : 0) + (mode === 'exclusive' ? 8 : 0));
    },
    release: (number) => input('release', number),
    cancel: (number) => input('cancel', number),
    // A snapshot is made of objects of the realm.
    query: () => realm.JSON.parse(JSON.stringify(observer.query())),
  };
  return engine;
}

const realm = createRealm(program, { ...NEEDED, engine: createEngine() });
const { embed, navigator, LockManager, Lock } = realm;
const provider = { locks: navigator.locks, LockManager, Lock, navigator, global: realm };

for (const testCase of embed.casesFor(provider)) {
  test(`${testCase.id} ${testCase.title}, in an embedded realm`, () => embed.runCase(testCase, provider));
}

test('errors and promises of an embedded realm are its own', async () => {
  const promise = navigator.locks.request();
  assert.ok(promise instanceof realm.Promise && !(promise instanceof Promise));
  await assert.rejects(promise, (error) => error instanceof realm.TypeError && !(error instanceof TypeError));
});

test('a manager that is not installed works, and a refusal has its own sentence', async () => {
  const interfaces = embed.createInterfaces(realm);
  const transport = transportOf(PARTITION);
  const other = embed.createManager(interfaces, { transport });
  const seen = await navigator.locks.request('a', () => other.request('a', { ifAvailable: true }, (lock) => lock));
  assert.equal(seen, null);
  const refusal = () => ({ name: 'InvalidStateError', message: 'the page is gone' });
  const refused = embed.createManager(interfaces, { transport, refusal });
  await assert.rejects(refused.request('a', () => {}), { name: 'InvalidStateError', message: 'the page is gone' });
});

test('a realm without an object that the interfaces use is named in the error', () => {
  const { embed: bare } = createRealm(library, {});
  assert.throws(() => bare.createInterfaces(), { message: 'the realm has no DOMException and no AbortSignal: define it before the locks' });
});

test('uninstalling from an embedded realm removes navigator.locks', async () => {
  const other = createRealm(library, NEEDED);
  const transport = transportOf(PARTITION);
  other.embed.installInterfaces(other, other.embed.createInterfaces(other), () => ({ transport }));
  assert.equal(typeof other.navigator.locks.request, 'function');
  await other.embed.uninstallInterfaces(other);
  assert.deepEqual([other.navigator, other.LockManager], [undefined, undefined]);
});
