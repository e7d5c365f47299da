// Blocks its thread right after a release, until another process has had the lock: service-blocking.js URL

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { connect } from 'navlocks';

const [url, isOther] = process.argv.slice(2);
const locks = await connect(url);
const said = await locks.request('busy', () => 'granted');
if (isOther === undefined) execFileSync(process.execPath, [fileURLToPath(import.meta.url), url, 'other'], { timeout: 60_000 });
console.log(said);
await locks.close();
