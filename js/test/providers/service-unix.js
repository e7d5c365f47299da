// The locks of a service, over a Unix socket.

import { connectProvider } from './service.js';

export const provider = await connectProvider('unix');
