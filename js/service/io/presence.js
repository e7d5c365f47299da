// The socket of presence: it shows that a client's process lives although its connection is gone.
//
// The kernel closes the socket with its process, and Node with its worker thread. So the service
// can distinguish a stopped client from an ended one.

import { createServer } from 'node:net';
import { isAbsolute } from 'node:path';

/** Largest length of a socket's path: Node truncates longer ones. */
const PATH_BYTES_MAX = process.platform === 'linux' ? 107 : 103;

export class Presence {
  /** Whether the socket is open. */
  isShown = false;
  #server = createServer((peer) => this.#accept(peer));
  #peers = new Set();

  /**
   * Listens at the path of the service's welcome. If it cannot, the session ends with its
   * connection or its process.
   *
   * @param shown called when the socket is open
   */
  constructor(path, shown) {
    this.path = path;
    if (!isAbsolute(path) || Buffer.byteLength(path) > PATH_BYTES_MAX) return;
    this.#server.on('error', ignore);
    this.#server.on('listening', () => {
      this.isShown = true;
      shown();
    });
    try {
      // Without `exclusive` the primary of a Node cluster would listen instead of its worker.
      // The service may belong to another user, and must be able to look.
      this.#server.listen({ path, exclusive: true, writableAll: true });
    } catch {
      // A runtime may deny it.
    }
    this.#server.unref();
  }

  /** Keeps a connection open: the service takes its end for a sign that this client has ended. */
  #accept(peer) {
    this.#peers.add(peer);
    peer.on('error', ignore);
    peer.on('close', () => this.#peers.delete(peer));
    peer.unref();
    peer.resume();
  }

  close() {
    this.isShown = false;
    this.#server.close();
    for (const peer of this.#peers) peer.destroy();
  }
}

function ignore() {}
