// How much of a test that gains from length is run: little by default, all of it with
// NAVLOCKS_SOAK=1.

import process from 'node:process';

export const soaks = process.env.NAVLOCKS_SOAK === '1';

/** The number that a variable gives, or the usual one. */
export function amount(variable, usual, soaking) {
  return Number(process.env[variable] ?? (soaks ? soaking : usual));
}
