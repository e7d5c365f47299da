// Waits only for a lock of another client, which keeps the process alive.

import { connect } from 'navlocks';

const locks = await connect(process.argv[2]);
locks.request('pending', () => console.log('granted'));
await locks.query();
console.log('waiting');
