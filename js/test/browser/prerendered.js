// What happens in a page that is prerendered and then seen, in order.

const url = new URLSearchParams(location.search).get('service');
const events = [];

function note(what) {
  events.push(document.prerendering ? `${what}, unseen` : what);
}

const { WebSocket } = globalThis;
globalThis.WebSocket = class extends WebSocket {
  constructor(...given) {
    note('it dials');
    super(...given);
  }
};
document.addEventListener('prerenderingchange', () => note('it is seen'));

// Later than the WebSocket above.
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
controller.abort('it was aborted');
note('all is asked');

document.addEventListener('prerenderingchange', () => note('all know'));
await fetch('/asked', { method: 'POST' });
await Promise.all(calls);
await fetch('/done', { method: 'POST', body: JSON.stringify(events) });
