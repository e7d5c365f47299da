// A client process: sends each JSON line of its input to a service, and prints each message that it
// receives.

import { createInterface } from 'node:readline';
import { WireClient } from './wire-client.js';

const client = await WireClient.connect(process.argv[2]);
client.onMessage = (message) => console.log(JSON.stringify(message));
console.log('"ready"');
for await (const line of createInterface(process.stdin)) client.send(JSON.parse(line));
client.close();
