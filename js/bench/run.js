// Measures navlocks beside the navigator.locks of Node and Deno, in the newest Node and in one run.
// Prints a JSON line for each case, size and side:
//
//   {"case":"sequential","what":"…","size":100000,"side":"navlocks","unit":"ns a request","value":…,"values":[…]}
//
// node bench/run.js [--quick] [--full] [--rounds N] [--case NAME]
//
//   --quick   sizes so small that the numbers mean nothing
//   --full    also what takes a peer minutes

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { cases } from './cases.js';

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '5' },
    case: { type: 'string' },
  },
});

const bin = (name) => fileURLToPath(new URL(`../peers/node_modules/.bin/${name}`, import.meta.url));
for (const name of ['node', 'deno']) {
  if (!existsSync(bin(name))) throw new Error('the peers are not installed: run npm ci --prefix peers');
}
const child = fileURLToPath(new URL('./child.js', import.meta.url));

const sides = {
  navlocks: { command: (v8) => [bin('node'), ...v8, child, 'navlocks'] },
  node: { command: (v8) => [bin('node'), ...v8, child, 'native'], patience: { queued: 20_000, crowded: 10_000 } },
  deno: { command: (v8) => [bin('deno'), 'run', '--quiet', '--allow-all', `--v8-flags=${v8}`, child, 'native'] },
};

const SECONDS_MAX = 300;

function measure({ command }, name, size) {
  const [program, ...given] = command(cases[name].v8 ?? ['--expose-gc']);
  const { stdout, stderr, error } = spawnSync(program, [...given, name, `${size}`], { encoding: 'utf8', timeout: SECONDS_MAX * 1000 });
  const value = Number.parseFloat(stdout);
  if (error || Number.isNaN(value)) return { failed: error?.message ?? stderr.trim().split('\n').slice(0, 3).join(' ') };
  return { value };
}

function median(values) {
  return [...values].sort((one, two) => one - two)[Math.floor(values.length / 2)];
}

const rounds = flags.quick ? 1 : Number(flags.rounds);
for (const [name, { what, unit, sizes }] of Object.entries(cases)) {
  if (flags.case !== undefined && flags.case !== name) continue;
  for (const given of sizes) {
    const size = flags.quick ? Math.min(given, 200) : given;
    const results = Object.fromEntries(Object.keys(sides).map((side) => [side, { values: [] }]));
    // One after the other in each round, so that a slow minute hits all alike.
    for (let round = 0; round < rounds; round++) {
      for (const [side, { patience, ...rest }] of Object.entries(sides)) {
        if (size > (patience?.[name] ?? Infinity) && !flags.full) continue;
        const { value, failed } = measure(rest, name, size);
        if (failed === undefined) results[side].values.push(value);
        else results[side].failed = failed;
      }
    }
    for (const [side, { values, failed }] of Object.entries(results)) {
      if (values.length === 0 && failed === undefined) continue;
      console.log(JSON.stringify({ case: name, what, size, side, unit, value: median(values), values, failed }));
    }
  }
}
