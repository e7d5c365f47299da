// Connected, and a lock is held: the process comes to its end all the same, and takes leave.

import { connect } from 'navlocks';

const locks = await connect(process.argv[2]);
await locks.request('a', () => {});
await locks.hold('held at the end');
process.on('exit', () => console.log('end'));
