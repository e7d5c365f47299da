// The messages of docs/wire.md: these tests write or read each example of the page.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { WAIT } from '../../standard/entry.js';
import { causeOf, fullSnapshot, read, isRequestKey, write, standardSnapshot, subprotocols, wrongPartition } from '../../service/wire.js';

const page = readFileSync(new URL('../../../docs/wire.md', import.meta.url), 'utf8');

function examples(kind) {
  return [...page.matchAll(new RegExp(`^\`\`\`json ${kind}\\n([^]*?)^\`\`\`$`, 'gm'))].flatMap(([, lines]) => lines.trim().split('\n'));
}

/** Returns the members of an entry that a request message has. */
function entry(scope, mode = 'exclusive', wait = WAIT.queue, tag = undefined) {
  return { scope, mode, wait, tag };
}

test('messages to the service are the documented ones', () => {
  const resume = { session: 12, secret: '8hV1vPbQ2mT0n3Zc5yYt4A', epoch: 5 };
  const sent = [
    write.hello('', undefined, undefined),
    write.hello('builds', 5000, undefined, {}, undefined, '4711@build-7'),
    write.hello('', undefined, undefined, { carry: true, unreachable: ['wss://node1.example:7400/'], 'home-ms': 5000 }),
    write.hello('', undefined, undefined, {}, '8hV1vPbQ2mT0n3Zc5yYt4A'),
    write.hello('', undefined, resume),
    write.open(1, 'builds'),
    write.close(1),
    write.request(1, 0, entry('invoice/42')),
    write.request(2, 1, entry(['orders', 'stock'], 'shared', WAIT.ifAvailable, 'report')),
    write.request(3, 0, entry('\ud800', 'exclusive', WAIT.stealAll)),
    write.request(6, 0, { ...entry('build', 'shared'), limit: 4, maxHold: 30_000 }),
    write.request(8, 0, { ...entry('audit'), within: { id: 7 } }),
    write.downgrade(1, { mode: 'shared' }),
    write.request(1, 0, entry('invoice/42'), { token: 1789000000000001, ms: 1500 }),
    write.claimed,
    write.present,
    write.end(1),
    write.timedOut(2),
    write.expired(7),
    write.ask(4, 1, { blockers: '12.7' }),
    write.ask(9, 0, { waits: 'deadlocks' }),
    write.ask(10, 0, { 'force-release': 'invoice/42' }),
    write.watch({ events: 0 }),
    write.watch({ 'no-events': 0 }),
    write.watch({ contention: 1 }),
    write.ping(7),
    write.bye,
  ];
  // The messages and queries that this client never sends.
  const unusedParts = ['contended', '"all"', '"within":"', '"waits":"partition"', '"question":"place"', 'place-of', 'unclaimed', '"view"'];
  const isUsed = (text) => !unusedParts.some((part) => text.includes(part));
  const documented = examples('to-service').filter(isUsed);
  assert.deepEqual(sent.toSorted(), documented.toSorted());
});

test('the documented messages to the client are parsed', () => {
  const messages = examples('to-client').map(read);
  assert.ok(messages.length > 15);
  for (const { word, body } of messages) assert.ok(body !== undefined, word);
  const losses = messages.filter(({ body }) => body.why?.lost !== undefined).map(({ body }) => causeOf(body.why.lost.cause));
  assert.deepEqual(losses, ['Stolen', 'HeldTooLong']);
  const { locks: snapshot } = messages.find(({ word, body }) => word === 'answer' && body.reply.locks !== undefined).body.reply;
  assert.deepEqual(standardSnapshot(snapshot), {
    held: [{ name: 'invoice/42', mode: 'exclusive', clientId: '12.0' }],
    pending: [{ name: 'invoice/42', mode: 'shared', clientId: '13.0' }],
  });
  const { held, pending } = fullSnapshot(snapshot, 10_000);
  assert.deepEqual(held[0], {
    id: '12.1',
    scope: ['invoice/42'],
    mode: 'exclusive',
    clientId: '12.0',
    since: 8500,
    tag: 'nightly',
    traceparent: undefined,
    pid: 4711,
    process: undefined,
    within: undefined,
    fencingToken: 1789000000000001,
    until: 38_500,
  });
  assert.deepEqual([pending[0].since, pending[0].within], [9980, '11.1']);
});

test('a malformed message is undefined', () => {
  for (const text of ['', '{', '1', 'null', '{}', '[]']) assert.equal(read(text), undefined, text);
});

test('subprotocols() encodes a token', () => {
  assert.deepEqual(subprotocols(undefined), ['navlocks.2']);
  const token = 'ß?>~ and more of it';
  const [, word] = subprotocols(token);
  assert.match(word, /^navlocks\.token\.[\w-]+$/);
  assert.equal(Buffer.from(word.slice('navlocks.token.'.length), 'base64url').toString(), token);
});

test('ids and partition names that would end the session are detected', () => {
  assert.deepEqual(['12.7', '4294967295.9007199254740991'].map(isRequestKey), [true, true]);
  for (const text of ['', '1', '1.', '.1', '1.2.3', 'a.b', '4294967296.1', '1.9007199254740993', '-1.1', '1.1e3']) {
    assert.equal(isRequestKey(text), false, text);
  }
  assert.equal(wrongPartition('x'.repeat(256)), undefined);
  assert.match(wrongPartition('x'.repeat(257)), /257/);
  assert.match(wrongPartition('\udc00'), /surrogates/);
});
