// The clients of the worker threads: the main thread calls the engine for them.

import process from 'node:process';
import { COUNT, createArray, MAIL, MAIL_LENGTH, MORE, NUMBER } from './array.js';

/** Serves the workers that ask this thread for a client, by the same version of the messages. */
export function serveWorkers(engine, version) {
  // The first listener, because one of the program may throw for a message that is not its own.
  process.prependListener('workerMessage', (message) => {
    if (message?.navlocks === undefined) return;
    const { navlocks: hello, port } = message;
    if (hello.version === version) serve(engine, hello, port);
    else port.postMessage({ refusal: 'another version of navlocks is loaded in the main thread: use one version, or connect() to a service' });
  });
}

function serve(engine, { partition, clientId }, port) {
  const array = createArray(64);
  let mail = [];
  const handle = engine.open(partition, clientId, array, () => {
    engine.take(handle, 0);
    collectMail();
    send([]);
  });

  function collectMail() {
    for (;;) {
      for (let at = MAIL; at < MAIL + array[COUNT] * MAIL_LENGTH; at++) mail.push(array[at]);
      if (array[MORE] === 0) return;
      engine.take(handle, 0);
    }
  }

  function send(answers) {
    if (mail.length > 0 || answers.length > 0) port.postMessage({ mail, answers });
    mail = [];
  }

  function call({ verb, number, outer, given }) {
    array[NUMBER] = number;
    array[COUNT] = verb === 'requestWithin' ? outer : 0;
    array[MORE] = 0;
    try {
      return { value: engine[verb](handle, ...given) };
    } catch ({ message }) {
      return { failure: message };
    } finally {
      collectMail();
    }
  }

  // All calls of a turn of the worker, whose effects come together as if they were made here.
  port.addEventListener('message', ({ data: calls }) => {
    const answers = [];
    for (const made of calls) {
      const answer = call(made);
      if (made.asks) answers.push(answer);
      else if (answer.failure !== undefined) port.postMessage({ refusal: answer.failure });
    }
    send(answers);
  });
  // Also when the worker was terminated.
  port.addEventListener('close', () => engine.close(handle));
  // In Deno a port that came by a message has no `on`, and does not start by itself.
  port.start();
  port.unref?.();
  port.postMessage({ welcome: true });
}
