// The tables of docs/peers.md: peers.js writes them, peers.test.js reads them.

const START = '<!-- made by npm run peers -->';
const MARKS = new Map([[true, 'yes'], [false, '**no**'], [undefined, '–']]);

/** Returns the page with new tables below its prose. */
export function peersTable(page, rows, columns) {
  const [prose] = page.split(START);
  const natives = columns.filter(({ native }) => native);
  const own = columns.filter(({ native }) => !native);
  const ours = rows.map((_, row) => combined(own.map(({ verdicts }) => verdicts[row])));
  const differing = [...rows.keys()].filter((row) => columns.some(({ verdicts }) => verdicts[row] === false));
  const parts = [
    START,
    '## Failures by runtime',
    table(['', 'behaviours tried', 'failed'], [
      ...natives.map((column) => [`${column.name}, its own`, ...counts(column)]),
      ...own.map((column) => [`navlocks, ${column.name}`, ...counts(column)]),
    ]),
    '## Behaviours that a runtime fails',
    table(['id', 'behaviour', 'navlocks', ...natives.map(({ name }) => name)],
      differing.map((row) => [...about(rows[row]), MARKS.get(ours[row]), ...marks(natives, row)])),
    '## All behaviours',
    `The first ${natives.length} columns are the runtimes' own locks, the others navlocks.`,
    table(['id', 'behaviour', ...columns.map(({ name }) => name)], rows.map((row, index) => [...about(row), ...marks(columns, index)])),
  ];
  return `${prose}${parts.join('\n\n')}\n`;
}

/** Returns the ids and titles of the table of all behaviours. */
export function casesOfPage(page) {
  const [, all] = page.split('## All behaviours');
  const lines = all.split('\n').filter((line) => line.startsWith('| ')).slice(2);
  return lines.map((line) => line.split(' | ', 2).map((cell) => cell.replace(/^\| /, '')));
}

/** Returns the columns of the table of all behaviours; none if it has other cases. */
export function columnsOfPage(page, rows) {
  const [prose, all] = page.split('## All behaviours');
  if (String(casesOfPage(page)) !== String(rows.map(about))) return [];
  const [head, , ...lines] = all.split('\n').filter((line) => line.startsWith('| ')).map((line) => line.slice(2, -2).split(' | '));
  const natives = prose.match(/, its own \|/g).length;
  const verdict = (mark) => [...MARKS].find(([, known]) => known === mark)[0];
  return head.slice(2).map((name, at) => ({ name, native: at < natives, verdicts: lines.map((line) => verdict(line[at + 2])) }));
}

/** Returns id and title of a case as the table has them. */
export function about({ id, title }) {
  return [id, title.replaceAll('|', '/')];
}

/** Returns false if any verdict is false, undefined if all are. */
function combined(verdicts) {
  const known = verdicts.filter((verdict) => verdict !== undefined);
  return known.length === 0 ? undefined : known.every(Boolean);
}

function counts({ verdicts }) {
  const known = verdicts.filter((verdict) => verdict !== undefined);
  return [known.length, known.filter((verdict) => !verdict).length];
}

function marks(columns, row) {
  return columns.map(({ verdicts }) => MARKS.get(verdicts[row]));
}

function table(heads, lines) {
  const cells = [heads, heads.map(() => '---'), ...lines];
  return cells.map((line) => `| ${line.join(' | ')} |`).join('\n');
}
