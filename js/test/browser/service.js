// A place with navlocks, through a service. The address of that stands in the place's own.

import { connect, install, LockHandle } from '../../browser.js';
import { takePart } from './place.js';

const query = new URLSearchParams(location.search);
const [url, lease] = [query.get('service'), Number(query.get('lease'))];
const body = query.get('body') ?? undefined;
const locks = install(globalThis, { url, lease });
const { LockManager, Lock, navigator } = globalThis;
const standard = { locks, LockManager, Lock, navigator, global: globalThis, extensions: true, ordered: true };

// A worker hears its port only if it listens from the beginning.
takePart(body === undefined ? standard : connect(url, { lease }).then((extended) => ({ ...standard, body, extended, LockHandle })));
