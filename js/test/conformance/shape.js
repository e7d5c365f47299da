// The shape of the interfaces, as WebIDL defines it.

import { equal, ok, same, throws } from './check.js';

export const shape = [
  {
    id: 'F13',
    title: 'interface objects are functions that cannot be called or constructed',
    async run({ provider: { LockManager, Lock } }) {
      for (const [name, object] of Object.entries({ LockManager, Lock })) {
        equal(typeof object, 'function');
        equal(object.name, name);
        equal(object.length, 0);
        equal(Object.getPrototypeOf(object), Function.prototype);
        throws(() => new object(), TypeError, `new ${name}()`);
        throws(() => object(), TypeError, `${name}()`);
        descriptor(object, 'prototype', { writable: false, enumerable: false, configurable: false });
        descriptor(object, 'name', { value: name, writable: false, enumerable: false, configurable: true });
        descriptor(object, 'length', { value: 0, writable: false, enumerable: false, configurable: true });
        descriptor(object.prototype, 'constructor', { value: object, writable: true, enumerable: false, configurable: true });
        descriptor(object.prototype, Symbol.toStringTag, { value: name, writable: false, enumerable: false, configurable: true });
        equal(Object.getPrototypeOf(object.prototype), Object.prototype);
      }
    },
  },
  {
    id: 'F13',
    title: 'operations are enumerable methods with the length of their shortest overload',
    async run({ provider: { LockManager } }) {
      for (const [name, length] of [['request', 2], ['query', 0]]) {
        descriptor(LockManager.prototype, name, { writable: true, enumerable: true, configurable: true });
        const method = LockManager.prototype[name];
        equal(method.name, name);
        equal(method.length, length);
        throws(() => new method(), TypeError, `new ${name}()`);
      }
      same(Object.keys(LockManager.prototype).sort(), ['query', 'request']);
    },
  },
  {
    id: 'F13',
    title: 'attributes are enumerable getters without setters',
    async run({ provider: { Lock } }) {
      for (const name of ['name', 'mode']) {
        const { get, set, enumerable, configurable } = Object.getOwnPropertyDescriptor(Lock.prototype, name);
        equal(get.name, `get ${name}`);
        equal(get.length, 0);
        equal(set, undefined);
        ok(enumerable && configurable);
        throws(() => get.call({}), TypeError, `${name} of another object`);
        throws(() => get.call(Lock.prototype), TypeError, `${name} of the prototype`);
        throws(() => get.call(undefined), TypeError, `${name} of nothing`);
      }
      same(Object.keys(Lock.prototype).sort(), ['mode', 'name']);
    },
  },
  {
    id: 'F13',
    title: 'objects have their interface and no properties of their own',
    async run({ locks, base, provider: { LockManager, Lock, global } }) {
      ok(locks instanceof LockManager);
      equal(Object.prototype.toString.call(locks), '[object LockManager]');
      same(Reflect.ownKeys(locks), []);
      await locks.request(base, (lock) => {
        ok(lock instanceof Lock);
        // The package's own locks may have more members than the standard's.
        if (global !== undefined) equal(Object.getPrototypeOf(lock), Lock.prototype);
        equal(Object.prototype.toString.call(lock), '[object Lock]');
        same(Reflect.ownKeys(lock), []);
      });
    },
  },
  {
    id: 'F13',
    title: 'interface objects and prototypes have no other members',
    async run({ provider: { LockManager, Lock } }) {
      for (const [object, members] of [[LockManager, ['query', 'request']], [Lock, ['mode', 'name']]]) {
        same(Reflect.ownKeys(object).map(String).sort(), ['length', 'name', 'prototype']);
        same(Reflect.ownKeys(object.prototype).map(String).sort(), ['Symbol(Symbol.toStringTag)', 'constructor', ...members]);
        equal(object.prototype[Symbol.unscopables], undefined);
        const seen = [];
        for (const key in object.prototype) seen.push(key);
        same(seen.sort(), members);
        for (const key of members) {
          const { value, get } = Object.getOwnPropertyDescriptor(object.prototype, key);
          equal('prototype' in (value ?? get), false);
          equal(Object.getPrototypeOf(value ?? get), Function.prototype);
        }
      }
    },
  },
  {
    id: 'F13',
    title: 'attributes of a lock accept locks alone, whatever their prototype',
    async run({ locks, base, provider: { Lock } }) {
      const lock = await locks.request(base, { mode: 'shared' }, (lock) => lock);
      const values = { name: base, mode: 'shared' };
      for (const [key, value] of Object.entries(values)) {
        const { get } = Object.getOwnPropertyDescriptor(Lock.prototype, key);
        equal(get.call(lock), value);
        for (const wrong of [Object.create(lock), Object.create(Lock.prototype), new Proxy(lock, {}), locks, null, 5]) {
          throws(() => get.call(wrong), TypeError, `${key} of another object`);
        }
        throws(() => {
          'use strict';
          lock[key] = 'other';
        }, TypeError, `${key} written`);
        equal(lock[key], value);
      }
      const bare = Object.setPrototypeOf(lock, null);
      equal(Object.getOwnPropertyDescriptor(Lock.prototype, 'name').get.call(bare), base);
    },
  },
  {
    id: 'F13',
    title: 'the global object has the interfaces as non-enumerable properties',
    needs: ['global'],
    async run({ provider: { global, LockManager, Lock } }) {
      for (const [name, object] of Object.entries({ LockManager, Lock })) {
        descriptor(global, name, { value: object, writable: true, enumerable: false, configurable: true });
      }
    },
  },
  {
    id: 'F12',
    title: 'navigator.locks is one object, behind a getter of Navigator',
    needs: ['navigator'],
    async run({ locks, provider: { navigator, LockManager } }) {
      equal(navigator.locks, locks);
      equal(navigator.locks, navigator.locks);
      equal(Object.getPrototypeOf(locks), LockManager.prototype);
      const own = Object.getOwnPropertyDescriptor(navigator, 'locks');
      const { get, set, enumerable, configurable } = own ?? Object.getOwnPropertyDescriptor(Object.getPrototypeOf(navigator), 'locks');
      equal(get.name, 'get locks');
      equal(get.length, 0);
      equal(set, undefined);
      ok(enumerable && configurable);
      for (const wrong of [{}, null, Object.create(navigator), Object.getPrototypeOf(navigator)]) {
        throws(() => get.call(wrong), TypeError, 'locks of another object');
      }
      throws(() => {
        'use strict';
        navigator.locks = 'other';
      }, TypeError, 'locks written');
    },
  },
];

function descriptor(object, key, expected) {
  const actual = Object.getOwnPropertyDescriptor(object, key);
  ok(actual !== undefined, `${String(key)} is missing`);
  for (const [field, value] of Object.entries(expected)) equal(actual[field], value, `${field} of ${String(key)}:`);
}
