#!/usr/bin/env node
// Runs the command `navlocks` of this platform's package: by execve() where Node has it, as a child
// otherwise.

import { spawn } from 'node:child_process';
import { explainMissing, findFile } from '../native/platforms.js';

/** The exit code of a command that cannot be started. */
const NOT_FOUND = 127;

const command = findFile('bin/navlocks');
const given = process.argv.slice(2);

if (command === undefined) {
  console.error(`navlocks: the command is missing: ${explainMissing()}`);
  process.exitCode = NOT_FOUND;
} else if (process.execve === undefined) {
  runChild();
} else {
  // Node warns on standard error that execve() is experimental; the stream belongs to the command.
  process.removeAllListeners('warning');
  process.execve(command, [command, ...given]);
}

/** Runs the command as a child, forwards signals, and exits with its status. */
function runChild() {
  const child = spawn(command, given, { stdio: 'inherit' });
  const passOn = (signal) => child.kill(signal);
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2']) process.on(signal, passOn);
  // A terminal sends these to both processes.
  for (const signal of ['SIGINT', 'SIGQUIT']) process.on(signal, () => {});
  child.on('error', ({ message }) => {
    console.error(`navlocks: the command cannot be started: ${message}`);
    process.exit(NOT_FOUND);
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}
