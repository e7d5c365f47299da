// The page that tests give orders to: makes the place where rows run, and the other clients of these rows.
// boss.html?kind=KIND&provider=PROVIDER: everything else of the query is for the provider.

const query = new URLSearchParams(location.search);
const provider = query.get('provider');
const script = `${provider}.js${location.search}`;
const page = `${provider}.html${location.search}`;

/** How a place of each kind is made: resolves with how to give it a port, and how to end it. */
const kinds = {
  async page() {
    return { give: (port) => dispatchEvent(new MessageEvent('message', { ports: [port] })) };
  },

  async iframe() {
    const frame = document.createElement('iframe');
    frame.src = page;
    const loaded = new Promise((resolve) => {
      frame.onload = resolve;
    });
    document.body.append(frame);
    await loaded;
    return { give: (port) => frame.contentWindow.postMessage('', '*', [port]), end: () => frame.remove() };
  },

  async window() {
    const opened = window.open(page, '_blank');
    // Later than the page's own listener.
    await new Promise((resolve) => {
      opened.addEventListener('load', resolve);
    });
    return { give: (port) => opened.postMessage('', '*', [port]), end: () => opened.close() };
  },

  async dedicated() {
    const worker = new Worker(script, { type: 'module' });
    return { give: (port) => worker.postMessage('', [port]), end: () => worker.terminate() };
  },

  async shared() {
    const worker = new SharedWorker(script, { type: 'module' });
    return { give: (port) => join(worker.port, port) };
  },

  async service() {
    const registration = await navigator.serviceWorker.register(script, { type: 'module', scope: './nowhere/' });
    const worker = registration.installing ?? registration.waiting ?? registration.active;
    while (worker.state !== 'activated') {
      await new Promise((resolve) => worker.addEventListener('statechange', resolve, { once: true }));
    }
    return { give: (port) => worker.postMessage('', [port]) };
  },
};

/** What a client must be to end in a way. */
const kindFor = { kill: 'dedicated', stop: 'dedicated', close: 'window', reload: 'iframe', navigate: 'iframe', remove: 'iframe' };

/** A shared worker is given its own port: what comes from one goes to the other. */
function join(one, other) {
  one.onmessage = ({ data, ports }) => other.postMessage(data, ports);
  other.onmessage = ({ data, ports }) => one.postMessage(data, ports);
}

async function start(kind, role) {
  const place = await kinds[kind]();
  const { port1, port2 } = new MessageChannel();
  place.give(port2);
  port1.postMessage(role);
  return { port: port1, end: place.end };
}

/** Another client for the place at the other end of this port. */
async function makeClient(port, number, way, clients) {
  const { port: agent, end } = await start(kindFor[way], 'agent');
  clients.set(number, end);
  await new Promise((resolve) => {
    agent.onmessage = resolve;
  });
  agent.onmessage = null;
  port.postMessage({ made: number }, [agent]);
}

async function makePlace(kind) {
  if (kind === 'page') await import(`./${script}`);
  const { port } = await start(kind, 'rows');
  const clients = new Map();
  const runs = new Map();
  let rows;
  const known = new Promise((resolve) => {
    rows = resolve;
  });
  port.onmessage = ({ data }) => {
    if (data.rows !== undefined) {
      rows(data.rows);
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
    rows: await known,
    /** What went wrong in a row. */
    run: (index, limit) => new Promise((resolve) => {
      runs.set(index, resolve);
      port.postMessage({ run: index, limit });
    }),
  };
}

globalThis.place = makePlace(query.get('kind'));
