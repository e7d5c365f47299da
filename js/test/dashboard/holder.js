// A process that talks to a service: it reads lines such as `request ["a"] shared tag` and `release
// 1`, and writes what it hears.

import { createInterface } from 'node:readline';
import { Talker } from './talker.js';

const talker = await Talker.connect(process.argv[2]);
talker.heard = (message) => console.log(JSON.stringify(message));
console.log('"ready"');
for await (const line of createInterface(process.stdin)) talker.say(JSON.parse(line));
talker.close();
