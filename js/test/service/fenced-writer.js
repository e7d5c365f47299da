// A process that holds a lock, and writes with its token when its input has a line.

import { connect } from 'navlocks';

const [url, resource, text] = process.argv.slice(2);
const locks = await connect(url);
const { fencingToken } = await locks.hold('report', { steal: text === 'thief' });
console.log(fencingToken);
process.stdin.once('data', async () => {
  const headers = { 'Fencing-Token': String(fencingToken) };
  const { status } = await fetch(resource, { method: 'PUT', headers, body: text });
  console.log(status);
  process.exit();
});
