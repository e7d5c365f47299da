// Records the events of a page that is prerendered and then activated.

const url = new URLSearchParams(location.search).get('service');
const events = [];

function note(event) {
  events.push(document.prerendering ? `${event}, prerendering` : event);
}

const { WebSocket } = globalThis;
globalThis.WebSocket = class extends WebSocket {
  constructor(...given) {
    note('connecting');
    super(...given);
  }
};
document.addEventListener('prerenderingchange', () => note('activated'));

// Imported after WebSocket was replaced.
const { connect, install } = await import('../../browser.js');
const locks = install(globalThis, { url });
const controller = new AbortController();
const calls = [
  locks.request('a', () => note('a is granted')),
  locks.request('-', () => {}).catch(({ name }) => note(name)),
  locks.request('b', { signal: controller.signal }, () => {}).catch(note),
  locks.query().then(({ held, pending }) => note(`${held.length} held, ${pending.length} pending`)),
  locks.request('a', { ifAvailable: true }, (lock) => note(`a is ${lock === null ? 'taken' : 'free'}`)),
  connect(url).then((other) => other.close()),
];
locks.request('c').catch(({ name }) => note(name));
controller.abort('aborted');
note('all calls are made');

document.addEventListener('prerenderingchange', () => note('last listener'));
await fetch('/called', { method: 'POST' });
await Promise.all(calls);
await fetch('/done', { method: 'POST', body: JSON.stringify(events) });
