// navigator.locks: the surface of the npm package over the engine of the host.

import { createInterfaces, Deliveries, installInterfaces } from 'navlocks/embed';
import { addTask } from './tasks.js';

const { host } = globalThis;

/** The kinds of mail, as in bridge.rs. */
const KINDS = [undefined, 'granted', 'unavailable', 'aborted', 'lost'];
const CAUSES = ['Stolen', 'ForceReleased'];
const [QUEUE, IF_AVAILABLE, STEAL] = [0, 1, 2];

/** Entries that may get mail, by number. */
const entries = new Map();
const deliveries = new Deliveries((turn) => () => addTask(turn));
let last = 0;
/** Numbers of requests that wait, and keep the agent alive. */
const waiting = new Set();

export const isWaiting = () => waiting.size > 0;

/** Delivers the mail of an answer. Returns whether the input had an effect. */
export function mail(answer) {
  for (let at = 1; at < answer.length; at += 3) {
    const [kind, number, value] = [KINDS[answer[at]], answer[at + 1], answer[at + 2]];
    const entry = entries.get(number);
    if (entry === undefined) continue;
    if (kind !== 'lost') waiting.delete(number);
    else entry.loss = CAUSES[value];
    if (kind !== 'granted') entries.delete(number);
    deliveries.add(kind === 'granted' ? granted : other, { entry, kind, value: kind === 'granted' ? value : CAUSES[value] });
  }
  return answer[0] === 1;
}

const granted = ({ entry, value }) => entry.granted(value);
const other = ({ entry, kind, value }) => entry[kind](value);

/** A name that is no text, with half of a surrogate pair, crosses as its code units. */
const coded = (name) => (name.isWellFormed() ? name : Array.from({ length: name.length }, (_, at) => name.charCodeAt(at)));
const decoded = (name) => (typeof name === 'string' ? name : String.fromCharCode(...name));
const shown = ({ name, ...more }) => ({ name: decoded(name), ...more });

const transport = {
  request(entry) {
    entry.number = ++last;
    entries.set(entry.number, entry);
    waiting.add(entry.number);
    const wait = entry.steal ? STEAL : entry.ifAvailable ? IF_AVAILABLE : QUEUE;
    mail(host.request(entry.number, coded(entry.name), entry.mode === 'shared', wait));
  },
  release({ number }) {
    entries.delete(number);
    return mail(host.release(number));
  },
  abort({ number }) {
    entries.delete(number);
    waiting.delete(number);
    mail(host.cancel(number));
  },
  query() {
    const { held, pending, mail: answer } = host.query();
    mail(answer);
    return { held: held.map(shown), pending: pending.map(shown) };
  },
};

const Navigator = { Navigator: class {}, WorkerNavigator: class {} }[host.isWorker ? 'WorkerNavigator' : 'Navigator'];
Object.defineProperty(globalThis, Navigator.name, { value: Navigator, writable: true, configurable: true });
globalThis.navigator = new Navigator();
if (host.isSecure) installInterfaces(globalThis, createInterfaces(globalThis), () => ({ transport }));
