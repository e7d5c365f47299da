// The length of long tests: short by default, full with NAVLOCKS_SOAK=1.

import process from 'node:process';

export const soaks = process.env.NAVLOCKS_SOAK === '1';

/** Returns the number in a variable, or the default. */
export function amount(variable, usual, soaking) {
  return Number(process.env[variable] ?? (soaks ? soaking : usual));
}
