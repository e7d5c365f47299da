// Holds a lock over a connection with a short lease, and prints its outcomes.

import { connect } from 'navlocks';

const [url, lease] = process.argv.slice(2);
const locks = await connect(url, { lease: Number(lease) });
const request = locks.hold('held');
await locks.query();
console.log('requested');
const lock = await request;
lock.signal.addEventListener('abort', () => console.log(`lost ${lock.signal.reason.cause} ${lock.held}`));
console.log('held');
// After a stop, input may arrive before any timer runs.
process.stdin.on('data', () => console.log(`answer ${lock.held}`));
