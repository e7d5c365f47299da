// The package as one minified classic script, because the public tests are classic scripts.

import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const resolveDir = fileURLToPath(new URL('../..', import.meta.url));

/** Returns a script that installs navlocks for browsers, except in insecure contexts. */
export function bundle(options) {
  const contents = `
    import { install } from './browser.js';
    try {
      install(globalThis, ${JSON.stringify(options)});
    } catch (error) {
      if (isSecureContext) throw error;
    }
  `;
  const { outputFiles } = buildSync({ stdin: { contents, resolveDir }, bundle: true, minify: true, format: 'iife', write: false });
  return outputFiles[0].text;
}
