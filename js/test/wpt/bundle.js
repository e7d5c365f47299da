// The package as one minified classic script: the public tests are classic scripts and want their
// locks before they begin.

import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const resolveDir = fileURLToPath(new URL('../..', import.meta.url));

/** A script that installs navlocks for browsers. Where install() refuses, as in an insecure context, nothing is there. */
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
