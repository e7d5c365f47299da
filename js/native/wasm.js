// The engine in WebAssembly, with the functions of the addon, for one thread. See
// native/src/wasm.rs.

import { Buffer } from 'node:buffer';
import { randomFillSync } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { clearInterval, setInterval } from 'node:timers';
import { fileURLToPath } from 'node:url';
import { COUNT, MAIL, MAIL_LENGTH, MORE, NUMBER } from './array.js';

// Read now: fake timers of a test runner replace them.
const { now } = Date;
const { queueMicrotask, WebAssembly } = globalThis;

/** The numbers of the module's own array. */
const ARRAY_LENGTH = MAIL + 64 * MAIL_LENGTH;

// The lists in the module's memory, as `place` numbers them.
const TEXT = 0;
const ENDS = 1;
const ARRAY = 2;
const REPORT_NUMBERS = 3;
const REPORT_TEXT = 4;
const REPORT_ENDS = 5;

/** Timers need some time: a day. */
const LONG_MS = 86_400_000;

/** Returns the path of the module; undefined if the package was built without it. */
export function findWasm() {
  const path = fileURLToPath(new URL('./navlocks.wasm', import.meta.url));
  return existsSync(path) ? path : undefined;
}

/** Returns an engine with a lock space of its own. */
export function instantiate(path) {
  const { exports: wasm } = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(path)), {});
  wasm.start(...randomFillSync(new Uint32Array(4)), ARRAY_LENGTH);

  /** { array, wake } of each client, by handle. */
  const clients = [];
  /** The clients that keep the event loop alive, and the timer by which they do. */
  const waiting = new Set();
  let timer;

  // Views of the module's memory: when that grows, they lose their buffer.
  let array;
  let units;
  let ends;

  /** Makes room for texts, and sets the views again where they have moved. */
  function reserve(length, count) {
    if (array?.length !== ARRAY_LENGTH || length > units.length || count > ends.length) {
      wasm.reserve(Math.max(length, 64), Math.max(count, 8));
      const { buffer } = wasm.memory;
      array = new Float64Array(buffer, wasm.place(ARRAY), ARRAY_LENGTH);
      units = new Uint16Array(buffer, wasm.place(TEXT), wasm.length(TEXT));
      ends = new Float64Array(buffer, wasm.place(ENDS), wasm.length(ENDS));
    }
  }

  /** Writes a text for the next call. Returns its end. */
  function write(text, index, start) {
    for (let at = 0; at < text.length; at++) units[start + at] = text.charCodeAt(at);
    return (ends[index] = start + text.length);
  }

  function writeAll(texts) {
    reserve(texts.reduce((length, text) => length + text.length, 0), texts.length);
    let end = 0;
    for (let index = 0; index < texts.length; index++) end = write(texts[index], index, end);
  }

  /** Calls a function of the module, for the request whose number is in the client's array. */
  function call(work, handle, first, second, third, fourth) {
    const { array: own } = clients[handle];
    reserve(0, 0);
    array[NUMBER] = own[NUMBER];
    wasm.tell_time(now());
    const result = work(handle, first, second, third, fourth);
    if (array.length !== ARRAY_LENGTH) reserve(0, 0);
    const count = array[COUNT];
    own[COUNT] = count;
    own[MORE] = array[MORE];
    for (let at = MAIL; at < MAIL + count * MAIL_LENGTH; at++) own[at] = array[at];
    wake();
    return result;
  }

  /** Wakes clients after this call, which may be one of theirs. */
  function wake() {
    for (let handle = wasm.take_woken(); handle !== -1; handle = wasm.take_woken()) {
      const client = clients[handle];
      queueMicrotask(() => clients[handle] === client && client.wake());
    }
  }

  function numbers(list) {
    return new Float64Array(wasm.memory.buffer, wasm.place(list), wasm.length(list)).slice();
  }

  /** Returns the report of a call as columns. */
  function report(isKnown) {
    if (!isKnown) throw new Error('the client was closed');
    const text = Buffer.from(wasm.memory.buffer, wasm.place(REPORT_TEXT), wasm.length(REPORT_TEXT) * 2);
    return [numbers(REPORT_NUMBERS), text.toString('utf16le'), numbers(REPORT_ENDS)];
  }

  /** Returns the serial of the request, or the deadlock of the outer lock with itself. */
  function request(handle, scope, how, tag, outer) {
    const isOne = typeof scope === 'string';
    if (isOne && tag === undefined) {
      reserve(scope.length, 1);
      write(scope, 0, 0);
    } else {
      writeAll([...(isOne ? [scope] : scope), ...(tag === undefined ? [] : [tag])]);
    }
    const serial = call(wasm.request, handle, how, isOne ? 1 : scope.length, tag === undefined ? 0 : 1, outer);
    if (serial === -2) return report(1);
    if (serial === -1) throw new Error('the lock space refuses this request');
    return serial;
  }

  return {
    open(partition, clientId, own, wakeClient) {
      writeAll([partition, clientId]);
      const handle = wasm.open();
      if (handle === -1) throw new Error('the lock space takes no more clients');
      clients[handle] = { array: own, wake: wakeClient };
      return handle;
    },
    close(handle) {
      this.keepAlive(handle, 0);
      clients[handle] = undefined;
      wasm.tell_time(now());
      wasm.close(handle);
      wake();
    },
    request: (handle, scope, how, tag) => request(handle, scope, how, tag, 0),
    /** The number of the outer lock stands in the array instead of the count of mail. */
    requestWithin: (handle, scope, how, tag) => request(handle, scope, how, tag, clients[handle].array[COUNT]),
    release: (handle) => call(wasm.release, handle) !== 0,
    cancel: (handle) => call(wasm.cancel, handle) !== 0,
    expire: (handle) => call(wasm.expire, handle) !== 0,
    downgrade: (handle, limit) => call(wasm.downgrade, handle, limit) !== 0,
    forceRelease(handle, name) {
      writeAll([name]);
      return call(wasm.force_release, handle);
    },
    watchContention: (handle) => call(wasm.watch_contention, handle),
    take: (handle, polls) => call(wasm.take, handle, polls),
    subscribe: (handle, capacity) => wasm.subscribe(handle, capacity),
    takeEvents: (handle) => report(wasm.take_events(handle)),
    query: (handle) => report(call(wasm.query, handle)),
    blockers: (handle, serial) => report(wasm.blockers(handle, serial)),
    deadlocks: (handle) => report(wasm.deadlocks(handle)),
    census: (handle) => report(wasm.census(handle))[0],
    keepAlive(handle, keep) {
      if (keep) waiting.add(handle);
      else waiting.delete(handle);
      if (waiting.size > 0) timer ??= setInterval(() => {}, LONG_MS);
      else timer = clearInterval(timer);
    },
  };
}
