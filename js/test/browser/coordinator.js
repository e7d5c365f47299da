// The page that a test controls: creates the place where cases run, and the other clients of cases.
// coordinator.html?kind=KIND&provider=PROVIDER[&clients=PROVIDER]: all other parameters are for the
// provider. Without `clients` the other clients have the same provider.

const query = new URLSearchParams(location.search);
const provider = query.get('provider');
const script = `${provider}.js${location.search}`;

/**
 * Creates a place of each kind, with a script or a page of the same provider. Resolves with
 * functions that pass it a port and that end it.
 */
const kinds = {
  async page() {
    return { give: (port) => dispatchEvent(new MessageEvent('message', { ports: [port] })) };
  },

  async iframe(_, page) {
    const frame = document.createElement('iframe');
    frame.src = page;
    const loaded = new Promise((resolve) => {
      frame.onload = resolve;
    });
    document.body.append(frame);
    await loaded;
    return { give: (port) => frame.contentWindow.postMessage('', '*', [port]), end: () => frame.remove() };
  },

  async window(_, page) {
    const opened = window.open(page, '_blank');
    // Added later than the page's own listener.
    await new Promise((resolve) => {
      opened.addEventListener('load', resolve);
    });
    return { give: (port) => opened.postMessage('', '*', [port]), end: () => opened.close() };
  },

  async dedicated(script) {
    const worker = new Worker(script, { type: 'module' });
    return { give: (port) => worker.postMessage('', [port]), end: () => worker.terminate() };
  },

  async shared(script) {
    const worker = new SharedWorker(script, { type: 'module' });
    return { give: (port) => join(worker.port, port) };
  },

  async service(script) {
    const registration = await navigator.serviceWorker.register(script, { type: 'module', scope: './nowhere/' });
    const worker = registration.installing ?? registration.waiting ?? registration.active;
    while (worker.state !== 'activated') {
      await new Promise((resolve) => worker.addEventListener('statechange', resolve, { once: true }));
    }
    return { give: (port) => worker.postMessage('', [port]) };
  },
};

/** The kind of client that can end in each way. */
const kindFor = { kill: 'dedicated', stop: 'dedicated', close: 'window', reload: 'iframe', navigate: 'iframe', remove: 'iframe' };

/**
 * Joins two ports, because a shared worker has its own: each forwards its messages to the other.
 */
function join(one, other) {
  one.onmessage = ({ data, ports }) => other.postMessage(data, ports);
  other.onmessage = ({ data, ports }) => one.postMessage(data, ports);
}

async function start(kind, role, provider) {
  const place = await kinds[kind](`${provider}.js${location.search}`, `${provider}.html${location.search}`);
  const { port1, port2 } = new MessageChannel();
  place.give(port2);
  port1.postMessage(role);
  return { port: port1, end: place.end };
}

/** Creates another client for the place at the other end of this port. */
async function makeClient(port, number, way, clients) {
  const { port: agent, end } = await start(kindFor[way], 'agent', query.get('clients') ?? provider);
  clients.set(number, end);
  await new Promise((resolve) => {
    agent.onmessage = resolve;
  });
  agent.onmessage = null;
  port.postMessage({ made: number }, [agent]);
}

async function makePlace(kind) {
  if (kind === 'page') await import(`./${script}`);
  const { port } = await start(kind, 'cases', provider);
  const clients = new Map();
  const runs = new Map();
  let cases;
  const known = new Promise((resolve) => {
    cases = resolve;
  });
  port.onmessage = ({ data }) => {
    if (data.cases !== undefined) {
      cases(data.cases);
    } else if (data.make !== undefined) {
      makeClient(port, data.make, data.way, clients);
    } else if (data.kill !== undefined) {
      clients.get(data.kill)();
      port.postMessage({ killed: data.kill });
    } else {
      runs.get(data.ran)(data.error);
      runs.delete(data.ran);
    }
  };
  return {
    cases: await known,
    /** Runs a case. Resolves with its error, if any. */
    run: (index, limit) => new Promise((resolve) => {
      runs.set(index, resolve);
      port.postMessage({ run: index, limit });
    }),
  };
}

globalThis.place = makePlace(query.get('kind'));
