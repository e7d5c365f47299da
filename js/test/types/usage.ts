// Correct and wrong programs. tsc checks this file, and no test runs it.

import { connect, install, type Leader, Lock, type LockHandle, LockManager, locks, type LossCause, type ServiceLocks } from 'navlocks';
import * as browser from 'navlocks/browser';
import * as embed from 'navlocks/embed';
import { acquire, installLineage, lineageOf, requestFlag, requestLock } from 'navlocks/lineage';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

function same<A, B>(_: Same<A, B>): void {}

const number = locks.request('a', async (lock) => lock.fencingToken);
same<typeof number, Promise<number>>(true);

const text = locks.request(['a', 'b'], { mode: 'shared', timeout: 10, tag: 'report' }, (lock) => lock.scope.join());
same<typeof text, Promise<string>>(true);

const slot = locks.request('a', { limit: 4 }, (lock) => lock.limit);
same<typeof slot, Promise<number | undefined>>(true);

const maybe = locks.request('a', { ifAvailable: true }, (lock) => {
  // @ts-expect-error: it may be null
  lock.name;
  return lock?.name;
});
same<typeof maybe, Promise<string | undefined>>(true);

const handle = locks.hold('a');
same<typeof handle, Promise<LockHandle>>(true);
const perhaps = locks.hold('a', { ifAvailable: true });
same<typeof perhaps, Promise<LockHandle | null>>(true);

export async function lead(): Promise<void> {
  await using leadership = await locks.elect('a', 'address', { timeout: 5 });
  same<typeof leadership.term, number>(true);
  for await (const leader of locks.leaders('a')) same<typeof leader, Leader | null>(true);
}

export async function scoped(): Promise<void> {
  await using lock = await locks.hold('a', { signal: AbortSignal.timeout(5) });
  lock.signal.throwIfAborted();
  const { held, pending } = await locks.inspect();
  same<(typeof held)[0]['fencingToken'], number>(true);
  // @ts-expect-error: no token before the grant
  pending[0]?.fencingToken;
}

const manager: LockManager = install(globalThis);
// @ts-expect-error: the standard knows no scopes
manager.request(['a'], () => {});
// @ts-expect-error: nor limits
manager.request('a', { limit: 4 }, () => {});
// @ts-expect-error: nor timeouts
manager.request('a', { timeout: 5 }, () => {});
// @ts-expect-error: nor tokens
manager.request('a', (lock) => lock.fencingToken);
// @ts-expect-error: there is no such mode
locks.request('a', { mode: 'other' }, () => {});
// @ts-expect-error: cannot be constructed
new Lock();
// @ts-expect-error: cannot be constructed
new LockManager();

export async function lineage(): Promise<void> {
  const lock = await requestLock('a');
  await lock.waitUntil(Promise.resolve());
  same<Awaited<ReturnType<typeof requestFlag>>['mode'], 'exclusive' | 'shared'>(true);
  // @ts-expect-error: the mode is required
  await requestFlag('a');
  const result = await acquire('a', (held) => held.name);
  same<typeof result, string>(true);
  const { auto, explicit, scoped } = lineageOf(await connect());
  (await explicit.requestLock(['a', 'b'], { mode: 'shared' })).release();
  await (await auto.requestLock('a')).released;
  const size = await scoped.requestLock('a', (held) => held.scope.length);
  same<typeof size, number>(true);
  // @ts-expect-error: there is no such option
  await auto.requestLock('a', { steal: true });
  installLineage(globalThis, locks);
}

export async function services(): Promise<void> {
  await using remote = await connect('ws://127.0.0.1:7400', { partition: 'a', token: 't', lease: 5000, unreachableAfter: Infinity, ca: 'PEM', origin: 'https://shop.example' });
  same<typeof remote, ServiceLocks>(true);
  await connect();
  await connect({ start: true, command: 'navlocks' });
  // @ts-expect-error: only one's own service can be started
  await connect('unix:/a', { start: true });
  const page = await browser.connect('wss://locks.example', { token: 't' });
  const { pending } = await page.inspect();
  await page.blockers(pending[0]?.id ?? 1);
  install(globalThis, remote);
  install(undefined, { url: 'wss://locks.example', origin: 'https://page.example' });
  install(globalThis, { start: true });
  // @ts-expect-error: only the user's own service is started
  install(globalThis, { url: 'wss://locks.example', start: true });
  browser.install(undefined, remote);
  browser.install(globalThis, { url: '/locks', native: 'also', partitioned: false });
  // @ts-expect-error: a browser has no service of its own
  browser.install(globalThis, {});
}

export async function watching(): Promise<void> {
  for await (const event of locks.events({ capacity: 10 })) {
    if (event.type === 'granted') same<typeof event.fencingToken, number>(true);
    else if (event.type === 'lost') same<typeof event.cause, LossCause>(true);
    else if (event.type === 'gap') same<typeof event.missed, number | undefined>(true);
    else same<typeof event.scope, string[]>(true);
    // @ts-expect-error: a gap is of no request
    event.scope;
  }
  const remote = await connect();
  const { connection } = remote;
  connection.addEventListener('change', () => connection.state === 'unreachable');
  // @ts-expect-error: there is no such state
  if (connection.state === 'out') return;
  same<typeof connection.leaseLeft, number | undefined>(true);
  // @ts-expect-error: a process has no connection
  locks.connection;
  const contended = await (await locks.hold('a')).contended();
  same<typeof contended, boolean>(true);
}

export function embedding(transport: embed.Transport): LockManager {
  const interfaces = embed.createInterfaces(globalThis);
  // @ts-expect-error: a transport has query()
  embed.createManager(interfaces, { transport: { request() {}, release: () => true, abort() {} } });
  const deliveries = new embed.Deliveries((turn) => () => setTimeout(turn));
  const { request } = transport;
  const watching: embed.Transport = {
    ...transport,
    request(entry) {
      request(entry);
      deliveries.add((to) => to.lost('Stolen'), entry);
      // @ts-expect-error: there is no such cause
      deliveries.add((to) => to.lost('Borrowed'), entry);
    },
  };
  return embed.installInterfaces(globalThis, interfaces, () => ({ transport: watching }));
}
