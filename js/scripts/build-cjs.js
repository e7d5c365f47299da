// Writes the package as CommonJS to cjs/, for jest and TypeScript with `module: node16`. Node loads
// the ES modules by require() too, so that a process has one instance.

import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'esbuild';
import { shipped } from './shipped.js';

const here = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(here, 'cjs');

/** Returns code for `import.meta.url`. The engine and other packages are beside the ES modules. */
function urlOf(name) {
  if (!/\b(addon|platforms|wasm)\.js$/.test(name)) return 'pathToFileURL(__filename).href';
  return `new URL('${name.replaceAll(/[^/]+/g, '..')}/${name}', pathToFileURL(__filename)).href`;
}

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
writeFileSync(join(folder, 'package.json'), '{ "type": "commonjs" }\n');
for (const name of shipped(here)) {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  if (name.endsWith('.d.ts')) {
    cpSync(join(here, name), join(folder, name));
    continue;
  }
  const { code } = transformSync(readFileSync(join(here, name), 'utf8'), {
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    // jest cannot import() either.
    supported: { 'dynamic-import': false },
    define: { 'import.meta.url': 'packageUrl' },
    banner: `const packageUrl = (({ pathToFileURL }) => ${urlOf(name)})(require('node:url'));`,
  });
  writeFileSync(join(folder, name), code);
}
