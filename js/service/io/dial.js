// Connects to a service from Node: the socket, TLS, and the WebSocket handshake.

import { connect as connectSocket, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import WebSocket from 'ws';
import { codeOfStatus } from '../refusals.js';
import { SUBPROTOCOLS } from '../wire.js';

/** Read now: fake timers of a test runner replace it. */
const { queueMicrotask } = globalThis;

/** Characters read from an HTTP response that refuses the WebSocket. */
const SENTENCE_MAX = 1000;

/** Returns `{ path }` of a Unix socket, or `{ url }`; undefined for other texts. */
export function parseAddress(text) {
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length).replace(/^\/\//, '');
    return path === '' ? undefined : { path };
  }
  const url = URL.parse === undefined ? parseUrl(text) : URL.parse(text);
  return url && (url.protocol === 'ws:' || url.protocol === 'wss:') && url.hash === '' ? { url } : undefined;
}

parseAddress.forms = 'unix:/path, ws://host:port or wss://host:port';

/** As URL.parse(), which Node learned later. */
function parseUrl(text) {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/**
 * Opens a WebSocket that sends the messages of one task in one write, and does not keep the process
 * alive.
 *
 * @param hint the advice when no process listens
 */
export function dial({ path, url }, { token, ca, origin }, hint = '') {
  let stream;
  const open = (options) => {
    stream = path === undefined ? connectTo(url, options, ca) : connectSocket(path);
    return stream.unref();
  };
  const socket = new WebSocket(path === undefined ? url : 'ws://localhost/', SUBPROTOCOLS, {
    createConnection: open,
    perMessageDeflate: false,
    autoPong: false,
    origin,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
  });
  noteFailure(socket, hint);
  answerPings(socket);
  let corked = false;
  const flush = () => {
    if (corked) stream.uncork();
    corked = false;
  };
  const send = socket.send.bind(socket);
  socket.send = (text) => {
    if (!corked) {
      corked = true;
      stream.cork();
      // A tick would be too late: the caller may block this thread until another client has the
      // lock.
      queueMicrotask(flush);
    }
    send(text, ignoreError);
  };
  socket.flush = flush;
  return socket;
}

function connectTo(url, { host, port }, ca) {
  if (url.protocol === 'ws:') return connectSocket({ host, port });
  return connectTls({ host, port, ca, servername: isIP(host) === 0 ? host : '', ALPNProtocols: ['http/1.1'] });
}

/**
 * Answers pings with at most one pong in the buffer: a service that never reads must not fill it.
 * Meanwhile only the latest ping counts, as WebSocket allows.
 */
function answerPings(socket) {
  let writing = false;
  let latest;
  const answer = () => {
    writing = latest !== undefined;
    if (writing) socket.pong(latest, undefined, answer);
    latest = undefined;
  };
  socket.on('ping', (payload) => {
    latest = payload;
    if (!writing) answer();
  });
}

/** Stores as `failure` why a socket did not open. */
function noteFailure(socket, hint) {
  socket.on('error', (error) => {
    // Errors of the system have a code; all others are errors of the handshake.
    const isSystem = error.code !== undefined && !error.code.startsWith('WS_ERR');
    socket.failure ??= { code: isSystem ? 'unreachable' : 'handshake', message: `${error.message || error.code}${isSystem ? hint : ''}` };
  });
  socket.on('unexpected-response', (_request, response) => {
    let sentence = '';
    const end = () => {
      const message = sentence.trim().slice(0, SENTENCE_MAX) || `the service answered ${response.statusCode}`;
      socket.failure ??= { code: codeOfStatus(response.statusCode, message), message };
      socket.terminate();
    };
    response.setEncoding('utf8');
    response.on('data', (text) => {
      sentence += text;
      if (sentence.length > SENTENCE_MAX) end();
    });
    response.on('end', end);
    response.on('error', end);
  });
}

/** Ignores an error of send(): the end of the connection reports it. */
function ignoreError() {}
