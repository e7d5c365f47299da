// A place with navlocks, through a service. The address of that stands in the place's own.

import { install } from '../../browser.js';
import { takePart } from './place.js';

const query = new URLSearchParams(location.search);
const [url, lease] = [query.get('service'), Number(query.get('lease'))];
const locks = install(globalThis, { url, lease });
const { LockManager, Lock, navigator } = globalThis;

takePart({ locks, LockManager, Lock, navigator, global: globalThis, extensions: true, ordered: true });
