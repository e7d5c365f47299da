// A resource behind HTTP that refuses late writers: a holder that was stopped past the end of its
// lock cannot know that, but its fencing token is older than that of the next holder. In js/ of a
// checkout: `node examples/fences.js`, then with tokens of locks
// `curl -X PUT -H 'Fencing-Token: 7' -d text http://127.0.0.1:3001/report`.
import { pathToFileURL } from 'node:url';

import express from 'express';

/**
 * Returns a middleware that lets a write pass if its `Fencing-Token` is at least as large as all
 * before at the same path. Others get 412, and those without a token 428.
 *
 * @param largest where the largest token of each path is kept: as long as what it protects
 */
export function fenced(largest = new Map()) {
  return (request, response, next) => {
    const token = Number(request.get('Fencing-Token') ?? NaN);
    if (!Number.isSafeInteger(token) || token < 1) {
      return response.status(428).send('send the token of your lock as Fencing-Token\n');
    }
    const { path } = request;
    if (token < (largest.get(path) ?? 0)) {
      return response.status(412).send(`a later holder has written '${path}': take the lock again, and look at it anew\n`);
    }
    // Before the write: one that fails must not let an older token pass.
    largest.set(path, token);
    next();
  };
}

/** A store of texts by path. */
export function store() {
  const texts = new Map();
  const app = express();
  app.put('/*path', fenced(), express.text({ type: () => true }), (request, response) => {
    texts.set(request.path, request.body);
    response.status(204).end();
  });
  app.get('/*path', (request, response) => {
    const text = texts.get(request.path);
    response.status(text === undefined ? 404 : 200).send(text ?? '');
  });
  return app;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) store().listen(3001, '127.0.0.1');
