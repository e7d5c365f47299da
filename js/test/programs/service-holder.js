// Holds a lock over a connection with a short lease, and says what becomes of it.

import { connect } from 'navlocks';

const [url, lease] = process.argv.slice(2);
const locks = await connect(url, { lease: Number(lease) });
const asked = locks.hold('held');
await locks.query();
console.log('asked');
const lock = await asked;
lock.signal.addEventListener('abort', () => console.log(`lost ${lock.signal.reason.cause} ${lock.held}`));
console.log('held');
// Whoever wakes from a long sleep may be asked first.
process.stdin.on('data', () => console.log(`answer ${lock.held}`));
