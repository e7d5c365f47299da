// Ends although it is connected and holds a lock.

import { connect } from 'navlocks';

const locks = await connect(process.argv[2]);
await locks.request('a', () => {});
await locks.hold('held at the end');
process.on('exit', () => console.log('end'));
