// A worker that tells whether a lock can be had: asks.js?service=ADDRESS&name=NAME[&nested], by
// itself or by a worker of its own.

import { connect } from '../../browser.js';

const query = new URLSearchParams(location.search);
const locks = await connect(query.get('service'));

if (query.has('nested')) {
  query.delete('nested');
  const worker = new Worker(`asks.js?${query}`, { type: 'module' });
  worker.onmessage = ({ data }) => postMessage(data);
} else {
  postMessage(await locks.request(query.get('name'), { ifAvailable: true }, (lock) => lock !== null));
}
