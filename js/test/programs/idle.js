// Ends although it holds a lock: no request is pending.

import { locks } from 'navlocks';

await locks.request('a', () => {});
locks.request('b', () => new Promise(() => {}));
const controller = new AbortController();
locks.request('b', { signal: controller.signal }, () => {}).catch(() => console.log('aborted'));
setTimeout(() => controller.abort(), 10);
process.on('exit', () => console.log('end'));
