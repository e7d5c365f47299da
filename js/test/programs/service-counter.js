// Increments a number in a file under a lock.

import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'navlocks';

/** Increments the number `times` times. */
export async function count(url, file, times) {
  const locks = await connect(url);
  for (let time = 0; time < times; time++) {
    await locks.request('counter', async () => {
      const number = Number(await readFile(file, 'utf8'));
      await writeFile(file, `${number + 1}`);
    });
  }
  await locks.close();
}

if (process.argv.length > 2) await count(process.argv[2], process.argv[3], Number(process.argv[4]));
