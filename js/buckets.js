// `locks` of storage buckets, where a browser has these: each bucket is a partition of its own.
// https://wicg.github.io/storage-buckets/

import { KeptMap, KeptWeakMap } from './collections.js';

/**
 * Puts `locks` on StorageBucket, and lets the end of a bucket end its locks.
 *
 * @param openSpace makes the locks of a bucket by its name: { createManager(), end() }
 * @param define    defines a property
 */
export function installBuckets(realm, openSpace, define) {
  const { StorageBucket, StorageBucketManager } = realm;
  if (StorageBucket === undefined || StorageBucketManager === undefined) return;
  const nameOf = Object.getOwnPropertyDescriptor(StorageBucket.prototype, 'name').get;
  /** Lock spaces by the name of their bucket, and managers by the object that a page has of it. */
  const spaces = new KeptMap();
  const managers = new KeptWeakMap();

  const { get } = Object.getOwnPropertyDescriptor(
    {
      get locks() {
        // Throws for everything that is no bucket.
        const name = Reflect.apply(nameOf, this, []);
        if (!spaces.has(name)) spaces.set(name, openSpace(name));
        const known = managers.get(this);
        if (known !== undefined && known.space === spaces.get(name)) return known.manager;
        const space = spaces.get(name);
        const manager = space.createManager();
        managers.set(this, { space, manager });
        return manager;
      },
    },
    'locks',
  );
  define(StorageBucket.prototype, 'locks', { get, set: undefined, enumerable: true, configurable: true });

  const native = StorageBucketManager.prototype.delete;
  const wrapped = {
    async delete(name) {
      const result = await Reflect.apply(native, this, arguments);
      // Also those that other pages hold: a bucket is gone for all.
      const space = spaces.get(`${name}`) ?? openSpace(`${name}`);
      spaces.delete(`${name}`);
      space.end();
      return result;
    },
  }.delete;
  define(StorageBucketManager.prototype, 'delete', { value: wrapped, writable: true, enumerable: true, configurable: true });
}
