// The connection to the service: one WebSocket for queries and answers.

const SUBPROTOCOL = 'navlocks.dashboard.1';
const TOKEN = 'navlocks.token.';
const KEY = 'navlocks.key';

const PAUSE_MS_MIN = 300;
const PAUSE_MS_MAX = 4000;

// The states of the connection.
export const DIALS = 'dials';
export const UP = 'up';
export const DOWN = 'down';
export const REFUSED = 'refused';

export class Link {
  state = DIALS;
  /** The refusal of the service, { code, message }. */
  refusal = undefined;
  downSince = undefined;
  /** The service, and the rights of the page there. */
  about = { service: '' };
  #changed;
  #socket;
  #queries = new Map();
  #next = 1;
  #pause = PAUSE_MS_MIN;

  constructor(changed) {
    this.#changed = changed;
  }

  /** Exchanges the token of the address for a key, if there is one, and connects. */
  async begin() {
    const token = /^#token=([\w-]{8,512})$/.exec(location.hash)?.[1];
    if (token !== undefined) {
      history.replaceState(null, '', '/#/');
      const answer = await fetch('/dashboard/key', { headers: { authorization: `Bearer ${token}` }, cache: 'no-store' });
      if (answer.status === 401) {
        this.#become(REFUSED, { code: 'used', message: (await answer.text()).trim() });
        return;
      }
      // A service without a gateway accepts the token itself.
      sessionStorage.setItem(KEY, answer.ok ? await answer.text() : token);
    }
    this.#dial();
  }

  /** Connects with another token. */
  enter(token) {
    sessionStorage.setItem(KEY, token);
    this.#dial();
  }

  #dial() {
    const key = sessionStorage.getItem(KEY);
    const protocols = key === null || key === '' ? [SUBPROTOCOL] : [SUBPROTOCOL, TOKEN + encode(key)];
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const socket = new WebSocket(`${scheme}://${location.host}/dashboard`, protocols);
    this.#socket = socket;
    socket.onopen = () => this.#greet().catch(() => {});
    socket.onmessage = ({ data }) => this.#receive(JSON.parse(data));
    socket.onclose = () => this.#closed(socket);
  }

  /** The link is up with its first answer: a service that refuses the page answers nothing. */
  async #greet() {
    this.about = await this.#send('service');
    this.#pause = PAUSE_MS_MIN;
    this.#become(UP);
  }

  #receive({ id, shown, refused, error }) {
    if (error !== undefined) {
      if (error.code === 'unauthorized' || error.code === 'forbidden-origin') this.#become(REFUSED, error);
      return;
    }
    const query = this.#queries.get(id);
    this.#queries.delete(id);
    if (refused !== undefined) query?.reject(new Error(refused.message));
    else query?.resolve(Object.values(shown)[0]);
  }

  #closed(socket) {
    if (socket !== this.#socket) return;
    for (const { reject } of this.#queries.values()) reject(new Error('the service is out of reach'));
    this.#queries.clear();
    if (this.state === REFUSED) return;
    this.#become(DOWN);
    setTimeout(() => this.#dial(), this.#pause);
    this.#pause = Math.min(this.#pause * 1.7, PAUSE_MS_MAX);
  }

  #become(state, refusal) {
    if (state === DOWN) this.downSince ??= Date.now();
    else this.downSince = undefined;
    this.state = state;
    this.refusal = refusal;
    this.#changed();
  }

  /** Queries the data of a view. */
  ask(view) {
    if (this.state !== UP) return Promise.reject(new Error('the service is out of reach'));
    return this.#send(view);
  }

  #send(view) {
    const id = this.#next;
    this.#next += 1;
    this.#socket.send(JSON.stringify({ id, view }));
    return new Promise((resolve, reject) => this.#queries.set(id, { resolve, reject }));
  }
}

function encode(token) {
  const bytes = String.fromCharCode(...new TextEncoder().encode(token));
  return btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
