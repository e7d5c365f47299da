// docs/peers.md has the current cases.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { compared } from '../conformance/cases.js';
import { about, casesOfPage, columnsOfPage, peersTable } from './peers-table.js';

const page = await readFile(new URL('../../../docs/peers.md', import.meta.url), 'utf8');

test('the table of peers has exactly the current cases: npm run peers writes it', () => {
  assert.deepEqual(casesOfPage(page), compared.map(about));
});

test('navlocks fails no behaviour of the table', () => {
  const summary = page.split('\n').filter((line) => line.startsWith('| navlocks, '));
  assert.equal(summary.length, 11);
  for (const line of summary) assert.match(line, / \| 0 \|$/);
});

test('a table has the verdicts of each runtime', () => {
  const rows = [{ id: 'F01', title: 'one' }, { id: 'F02', title: 'a|b' }];
  const columns = [{ name: 'Peer', native: true, verdicts: [true, false] }, { name: 'here', verdicts: [undefined, true] }];
  const text = peersTable('prose\n<!-- made by npm run peers -->\nold', rows, columns);
  assert.ok(text.startsWith('prose\n'));
  assert.ok(!text.includes('old'));
  assert.ok(text.includes('| Peer, its own | 2 | 1 |\n| navlocks, here | 1 | 0 |'));
  assert.ok(text.includes('| id | behaviour | navlocks | Peer |\n| --- | --- | --- | --- |\n| F02 | a/b | yes | **no** |\n\n'));
  assert.deepEqual(casesOfPage(text), [['F01', 'one'], ['F02', 'a/b']]);
  assert.deepEqual(columnsOfPage(text, rows), [{ ...columns[0], native: true }, { ...columns[1], native: false }]);
  assert.deepEqual(columnsOfPage(text, rows.slice(1)), []);
});
