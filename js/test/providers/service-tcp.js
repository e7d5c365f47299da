// The locks of a service, over TCP.

import { connectProvider } from './service.js';

export const provider = await connectProvider('tcp');
