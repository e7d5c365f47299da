// A worker that posts whether a lock is available:
// availability.js?service=ADDRESS&name=NAME[&nested]. With `nested` a worker of its own does it.

import { connect } from '../../browser.js';

const query = new URLSearchParams(location.search);
const locks = await connect(query.get('service'));

if (query.has('nested')) {
  query.delete('nested');
  const worker = new Worker(`availability.js?${query}`, { type: 'module' });
  worker.onmessage = ({ data }) => postMessage(data);
} else {
  postMessage(await locks.request(query.get('name'), { ifAvailable: true }, (lock) => lock !== null));
}
