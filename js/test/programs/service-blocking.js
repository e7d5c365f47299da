// Blocks its thread after a release until another process had the lock: service-blocking.js URL

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { connect } from 'navlocks';

const [url, isOther] = process.argv.slice(2);
const locks = await connect(url);
const result = await locks.request('busy', () => 'granted');
if (isOther === undefined) execFileSync(process.execPath, [fileURLToPath(import.meta.url), url, 'other'], { timeout: 60_000 });
console.log(result);
await locks.close();
