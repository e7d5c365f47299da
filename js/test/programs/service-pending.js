// Nothing to wait for but a lock that somebody else holds: the process stays until it is granted.

import { connect } from 'navlocks';

const locks = await connect(process.argv[2]);
locks.request('pending', () => console.log('granted'));
await locks.query();
console.log('waiting');
