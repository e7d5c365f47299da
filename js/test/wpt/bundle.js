// The modules of the package as one classic script: the public tests are classic scripts and want their locks before they begin.

import { readFileSync } from 'node:fs';
import ts from 'typescript';

const { ModuleKind, ScriptTarget, transpileModule } = ts;
const compilerOptions = { module: ModuleKind.CommonJS, target: ScriptTarget.ESNext };

/** Modules by name, each as the body of a function of `exports` and `require`. */
function collect(name, modules = new Map()) {
  if (modules.has(name)) return modules;
  const source = readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');
  const { outputText } = transpileModule(source, { compilerOptions });
  modules.set(name, outputText);
  for (const [, wanted] of outputText.matchAll(/require\("(\.\/[\w-]+\.js)"\)/g)) collect(wanted, modules);
  return modules;
}

/** A script that installs navlocks for browsers. Where install() refuses, as in an insecure context, nothing is there. */
export function bundle(options) {
  const modules = [...collect('./browser.js')].map(([name, body]) => `${JSON.stringify(name)}(exports, require) {\n${body}\n}`);
  return `{
    const bodies = { ${modules.join(',\n')} };
    const loaded = {};
    const require = (name) => {
      if (!(name in loaded)) bodies[name](loaded[name] = {}, require);
      return loaded[name];
    };
    try {
      require('./browser.js').install(globalThis, ${JSON.stringify(options)});
    } catch (error) {
      if (isSecureContext) throw error;
    }
  }`;
}
