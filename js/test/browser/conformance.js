// The conformance cases in a browser, one after the other.

/** The kinds of places where cases run. */
export const KINDS = ['page', 'iframe', 'dedicated', 'shared', 'service'];

/** A place that does not answer within this many limits has hung: no case has as many. */
const LIMITS_MAX = 15;

/**
 * Opens the place and runs every case.
 *
 * @param browsers  returns a browser, another one after a crash
 * @param base      the address of the site
 * @param given     kind, provider and the parameters of the provider
 * @yields { id, title, passed, error }
 */
export async function* runCases(browsers, base, given, { limit = 120_000, wanted = () => true } = {}) {
  const address = `${base}/test/browser/coordinator.html?${new URLSearchParams(given)}`;
  let page = await openPlace(browsers, address);
  const cases = await page.evaluate(async () => (await globalThis.place).cases);
  for (const [index, { id, title }] of cases.entries()) {
    if (!wanted({ id, title })) continue;
    const error = await runOne(page, index, limit);
    yield { id, title, passed: error === undefined, error };
    if (error !== undefined) {
      // The next case must not see locks of the failed one.
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

/** Runs one case. Resolves with its error, also for a crash of the page or the browser. */
async function runOne(page, index, limit) {
  const run = page.evaluate(async ([index, limit]) => (await globalThis.place).run(index, limit), [index, limit]);
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, limit * LIMITS_MAX, 'the place does not answer any more');
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
