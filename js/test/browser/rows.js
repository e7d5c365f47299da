// Rows in a browser, one after the other.

/** Where rows run. */
export const KINDS = ['page', 'iframe', 'dedicated', 'shared', 'service'];

/** A place that has not given up a row after so many limits is given up itself: more than the patience of any row. */
const LATE = 15;

/**
 * Opens the place and tries every row.
 *
 * @param browsers  gives a browser, a new one when the old one is gone
 * @param base      the address of the site
 * @param given     kind, provider and what the provider wants to know
 * @yields { id, title, passed, error }
 */
export async function* runRows(browsers, base, given, { limit = 120_000, wanted = () => true } = {}) {
  const address = `${base}/test/browser/boss.html?${new URLSearchParams(given)}`;
  let page = await openPlace(browsers, address);
  const rows = await page.evaluate(async () => (await globalThis.place).rows);
  for (const [index, { id, title }] of rows.entries()) {
    if (!wanted({ id, title })) continue;
    const error = await runRow(page, index, limit);
    yield { id, title, passed: error === undefined, error };
    if (error !== undefined) {
      // Whatever it left behind is not the next one's fault.
      await page.context().close();
      page = await openPlace(browsers, address);
    }
  }
  await page.context().close();
}

async function openPlace(browsers, address) {
  const context = await (await browsers()).newContext();
  const page = await context.newPage();
  await page.goto(address);
  return page;
}

/** What went wrong in a row: also that its page or the whole browser crashed. */
async function runRow(page, index, limit) {
  const run = page.evaluate(async ([index, limit]) => (await globalThis.place).run(index, limit), [index, limit]);
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, limit * LATE, 'the place does not answer any more');
  });
  const crash = new Promise((resolve) => page.once('crash', () => resolve('the page crashed')));
  try {
    return await Promise.race([run, late, crash]);
  } catch (error) {
    return String(error);
  } finally {
    clearTimeout(timer);
  }
}
