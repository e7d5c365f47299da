// A place in a browser where rows run, or where another client of a row lives: a page, a frame, or a worker of any kind.
//
// It is given a port. What comes first through it says what the place is for.

import { serve as obey } from '../conformance/agent.js';
import { tryRow } from '../conformance/bench.js';
import { Client } from '../conformance/client.js';
import { rowsFor } from '../conformance/rows.js';

const isWindow = typeof document === 'object';

/** How a client can end by itself, and what it must be for that: see boss.js. */
export const ends = isWindow
  ? {
      close: () => window.close(),
      reload: () => location.reload(),
      navigate: () => location.assign('empty.html'),
      remove: () => frameElement.remove(),
    }
  : { stop: () => globalThis.close() };

const WAYS = ['close', 'reload', 'navigate', 'remove', 'stop'];

const roles = {
  /** A client that obeys orders. */
  agent(port, { locks }) {
    const channel = {
      send: (message) => port.postMessage(message),
      receive: (hear) => {
        port.onmessage = ({ data }) => hear(data);
      },
    };
    obey(locks, channel, ends);
    port.postMessage('ready');
  },

  /** Tries the rows that it is told to. */
  rows(port, provider) {
    const clients = [];
    const rows = rowsFor({ ...provider, newClient }, provider.body);

    /** Only pages can make clients of every kind, so the boss does. */
    function newClient(way = 'kill') {
      return new Promise((resolve) => {
        const number = clients.push(resolve) - 1;
        port.postMessage({ make: number, way });
      });
    }

    port.onmessage = async ({ data: { run, limit, made, killed }, ports }) => {
      if (made !== undefined) {
        const resolve = clients[made];
        resolve(newHandle(ports[0], made));
      } else if (killed !== undefined) {
        clients[killed]();
      } else {
        port.postMessage({ ran: run, error: await tell(rows[run], limit) });
      }
    };

    function newHandle(agent, number) {
      const killing = new Promise((resolve) => {
        clients[number] = resolve;
      });
      const channel = {
        send: (message) => agent.postMessage(message),
        receive: (hear) => {
          agent.onmessage = ({ data }) => hear(data);
        },
        kill() {
          port.postMessage({ kill: number });
          return killing;
        },
        // That it is over shows by its locks.
        ended: undefined,
      };
      return new Client(channel, WAYS);
    }

    async function tell(row, limit) {
      try {
        await tryRow(row, { ...provider, newClient }, limit);
      } catch (error) {
        return String(error?.stack ?? error);
      }
    }

    port.postMessage({ rows: rows.map(({ id, title }) => ({ id, title })) });
  },
};

/** Takes part, by the locks of a provider, or of a promise of one. */
export function takePart(provider) {
  function hear(event) {
    const [port] = event.ports;
    if (port === undefined) return;
    // A service worker lives as long as somebody waits for it.
    event.waitUntil?.(new Promise(() => {}));
    port.onmessage = async ({ data: role }) => roles[role](port, await provider);
  }
  addEventListener('message', hear);
  addEventListener('connect', hear);
}
