// Turns in Node: when they begin, and errors between them. Also without Node's function that runs
// promise jobs.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import process from 'node:process';
import { test } from 'node:test';

/** Returns the output of a program with `createTurns`, in a process of its own. */
function run(program, before) {
  const turns = JSON.stringify(new URL('../../internal/turns.js', import.meta.url).href);
  const source = `${before}; const { createTurns } = await import(${turns}); ${program}`;
  return execFileSync(process.execPath, ['--input-type=module', '--eval', source], { encoding: 'utf8' }).trim();
}

const nodes = {
  'as it is': '',
  'without a function that runs jobs': 'delete process._tickCallback',
  'with another function of that name': "process._tickCallback = () => { throw new Error('not this one'); }",
};

for (const [which, before] of Object.entries(nodes)) {
  test(`a turn begins after all ready promise jobs, Node ${which}`, () => {
    const said = run(
      `const said = [];
      let left = 3;
      const arrange = createTurns(() => {
        said.push('turn');
        if (--left === 0) return console.log(said.join(' '));
        arrange();
        Promise.resolve().then(() => said.push('job')).then(() => said.push('its job'));
      });
      arrange();
      said.push('later');`,
      before,
    );
    assert.equal(said, 'later turn job its job turn job its job turn');
  });

  test(`an endless series of turns does not starve the event loop, Node ${which}`, () => {
    const said = run(
      `let over = false;
      const arrange = createTurns(() => over || arrange());
      arrange();
      setTimeout(() => {
        over = true;
        console.log('timer');
      });`,
      before,
    );
    assert.equal(said, 'timer');
  });

  test(`an exception between two turns stops neither, Node ${which}`, () => {
    const said = run(
      `const said = [];
      process.on('uncaughtException', ({ message }) => said.push(message));
      let left = 3;
      const arrange = createTurns(() => {
        said.push('turn');
        if (--left === 0) return console.log(said.join(' '));
        arrange();
        process.nextTick(() => {
          throw new Error('thrown');
        });
      });
      arrange();`,
      before,
    );
    assert.equal(said.replaceAll(' thrown', ''), 'turn turn turn');
    assert.equal(said.match(/thrown/g).length, 2);
  });

  test(`several series of turns alternate, Node ${which}`, () => {
    const said = run(
      `const said = [];
      const left = { a: 3, b: 3 };
      const kinds = Object.keys(left).map((kind) => {
        const arrange = createTurns(() => {
          said.push(kind);
          if (--left[kind] > 0) arrange();
          else if (left.a + left.b === 0) console.log(said.sort().join(''));
        });
        return arrange;
      });
      for (const arrange of kinds) arrange();`,
      before,
    );
    assert.equal(said, 'aaabbb');
  });
}

for (const flags of [['--pending-deprecation'], ['--pending-deprecation', '--throw-deprecation']]) {
  test(`locks use no deprecated function of Node, with ${flags.join(' ')}`, () => {
    const program = `
      import { locks } from ${JSON.stringify(import.meta.resolve('navlocks'))};
      let count = 0;
      const loop = async () => {
        for (let round = 0; round < 200; round++) await locks.request('a', () => count++);
      };
      await Promise.all([loop(), loop()]);
      console.log(count);
    `;
    const { stdout, stderr } = spawnSync(process.execPath, [...flags, '--input-type=module', '--eval', program], { encoding: 'utf8' });
    assert.deepEqual([stdout, stderr], ['400\n', '']);
  });
}
