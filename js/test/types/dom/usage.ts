// A page's project without the library esnext.disposable.

import { connect, type LockHandle, type Locks } from 'navlocks/browser';
import { lineageOf } from 'navlocks/lineage';

export async function first(): Promise<LockHandle> {
  const locks: Locks = await connect('wss://locks.example');
  lineageOf(locks).requestFlag(['a'], 'shared');
  return await locks.hold('a');
}
