// Runs programs of the folder programs/ in processes.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const pathOf = (program) => fileURLToPath(new URL(`../programs/${program}`, import.meta.url));

/** A running program with its output, line by line. */
export class Program {
  #lines;

  constructor(program, given) {
    this.child = spawn(process.execPath, [pathOf(program), ...given], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.exit = once(this.child, 'exit');
    this.#lines = createInterface(this.child.stdout)[Symbol.asyncIterator]();
  }

  async line() {
    return (await this.#lines.next()).value;
  }

  kill(signal = 'SIGKILL') {
    this.child.kill(signal);
    return this.exit;
  }
}
