// A place in a browser for cases or for their other clients: a page, a frame, or a worker.
// The first message through its port names the role of the place.

import { serve } from '../conformance/agent.js';
import { runCase } from '../conformance/bench.js';
import { Client } from '../conformance/client.js';
import { casesFor } from '../conformance/cases.js';

const isWindow = typeof document === 'object';

/** The ways in which a client can end itself; coordinator.js has the kind of client for each. */
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
  /** Executes commands of a case. */
  agent(port, { locks }) {
    const channel = {
      send: (message) => port.postMessage(message),
      receive: (handle) => {
        port.onmessage = ({ data }) => handle(data);
      },
    };
    serve(locks, channel, ends);
    port.postMessage('ready');
  },

  /** Runs the requested cases. */
  cases(port, provider) {
    const clients = [];
    const cases = casesFor({ ...provider, newClient }, provider.body);

    /** Lets the coordinator create a client: only pages can create every kind. */
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
        port.postMessage({ ran: run, error: await runToError(cases[run], limit) });
      }
    };

    function newHandle(agent, number) {
      const killing = new Promise((resolve) => {
        clients[number] = resolve;
      });
      const channel = {
        send: (message) => agent.postMessage(message),
        receive: (handle) => {
          agent.onmessage = ({ data }) => handle(data);
        },
        kill() {
          port.postMessage({ kill: number });
          return killing;
        },
        // The locks of the client show its end.
        ended: undefined,
      };
      return new Client(channel, WAYS);
    }

    async function runToError(testCase, limit) {
      try {
        await runCase(testCase, { ...provider, newClient }, limit);
      } catch (error) {
        return String(error?.stack ?? error);
      }
    }

    port.postMessage({ cases: cases.map(({ id, title }) => ({ id, title })) });
  },
};

/** Starts the place with a provider, or a promise of one. */
export function startPlace(provider) {
  function begin(event) {
    const [port] = event.ports;
    if (port === undefined) return;
    // The browser keeps a service worker alive until this promise settles.
    event.waitUntil?.(new Promise(() => {}));
    port.onmessage = async ({ data: role }) => roles[role](port, await provider);
  }
  addEventListener('message', begin);
  addEventListener('connect', begin);
}
