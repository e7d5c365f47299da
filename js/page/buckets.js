// The attribute `locks` of storage buckets, where a browser has them. Each bucket is a partition.
// https://wicg.github.io/storage-buckets/

import { KeptMap, KeptWeakMap } from '../internal/collections.js';

/**
 * Defines `locks` on StorageBucket, and ends the locks of a bucket that is deleted.
 *
 * @param openSpace opens the lock space of a bucket by its name: { createManager(), end() }
 * @param define    defines a property
 */
export function installBuckets(realm, openSpace, define) {
  const { StorageBucket, StorageBucketManager } = realm;
  if (StorageBucket === undefined || StorageBucketManager === undefined) return;
  const nameOf = Object.getOwnPropertyDescriptor(StorageBucket.prototype, 'name').get;
  /** Lock spaces by bucket name, and managers by StorageBucket object. */
  const spaces = new KeptMap();
  const managers = new KeptWeakMap();

  const { get } = Object.getOwnPropertyDescriptor(
    {
      get locks() {
        // Throws if `this` is not a bucket.
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
      // Ends the locks of other pages too: the bucket is deleted for all.
      const space = spaces.get(`${name}`) ?? openSpace(`${name}`);
      spaces.delete(`${name}`);
      space.end();
      return result;
    },
  }.delete;
  define(StorageBucketManager.prototype, 'delete', { value: wrapped, writable: true, enumerable: true, configurable: true });
}
