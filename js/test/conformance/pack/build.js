// Writes the rows in the form of web-platform-tests: node build.js FOLDER
//
// FOLDER gets the contents of web-locks/: a script for each group of rows, and resources/.

import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { columnsOfPage } from '../../package/peers-table.js';
import { casesFor, compared, groups } from '../cases.js';

const file = (path) => fileURLToPath(new URL(path, import.meta.url));

/** The abilities of a provider that an adapter can offer. */
const ABILITIES = { navigator: {}, global: {}, newClient() {} };

/** Returns the runtimes whose own locks fail a row, by docs/peers.md. */
function failing() {
  const columns = columnsOfPage(readFileSync(file('../../../../docs/peers.md'), 'utf8'), compared);
  const natives = columns.filter(({ native }) => native);
  return (row) => natives.filter(({ verdicts }) => verdicts[compared.indexOf(row)] === false).map(({ name }) => name);
}

const HEAD = `// META: title=Web Locks API: TITLE
// META: script=resources/adapter.js
// META: script=resources/rows.js
// META: global=window,dedicatedworker
// META: timeout=long

'use strict';
`;

function script(title, rows, runtimesOf) {
  const tests = rows.map((row) => {
    const runtimes = runtimesOf(row);
    const mark = runtimes.length > 0 ? `// Fails in ${runtimes.join(', ')}.\n` : '';
    const [id, text] = [row.id, row.title].map((given) => JSON.stringify(given));
    return `\n${mark}promise_test(() => conformance.run(${id}, ${text}),\n  ${JSON.stringify(`${row.id} ${row.title}`)});\n`;
  });
  return HEAD.replace('TITLE', title) + tests.join('');
}

/** Writes the files. Returns the rows, each with the runtimes that fail it. */
export function buildPack(folder) {
  const resources = join(folder, 'resources');
  mkdirSync(resources, { recursive: true });
  copyFileSync(file('adapter.js'), join(resources, 'adapter.js'));
  for (const [name, globalName] of [['rows.js', 'conformance'], ['agent.js', 'agent']]) {
    buildSync({ entryPoints: [file(name)], outfile: join(resources, name), bundle: true, format: 'iife', globalName, banner: { js: "'use strict';" } });
  }
  const runtimesOf = failing();
  const runnable = casesFor(ABILITIES);
  const isCandidate = (row) => runtimesOf(row).length > 0;
  for (const [name, rows] of Object.entries(groups)) {
    const passed = rows.filter((row) => runnable.includes(row) && !isCandidate(row));
    writeFileSync(join(folder, `${name}.https.any.js`), script(name, passed, runtimesOf));
  }
  writeFileSync(join(folder, 'candidates.tentative.https.any.js'), script('rows that a runtime fails', runnable.filter(isCandidate), runtimesOf));
  return runnable.map((row) => ({ row, runtimes: runtimesOf(row) }));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , folder] = process.argv;
  if (folder === undefined) throw new Error('no folder is given: node build.js FOLDER');
  console.log(`${buildPack(folder).length} rows are in ${folder}`);
}
