// The next address that a session dials, as `route` of the Rust client has it.
//
//   the last good address, then the list ──▶ node ──moved, with an address──▶ owner
//                   ▲                         ▲                                 │
//                   └── moved, without one ───┴──── carry ◀── out of reach ─────┘

import { isEncrypted, isInClear } from './io/addresses.js';
import { append, dropFirst, each, mapped, plainList, removed, some } from '../internal/lists.js';
import { refusalOf } from './refusals.js';

/**
 * How often in a row an address that a node named is dialled without a pause: two nodes may
 * disagree for a moment.
 */
const HOPS_MAX = 4;

/** How many milliseconds a node out of reach is not dialled again, at first and at last. */
const UNREACHABLE_MS_MIN = 5000;
const UNREACHABLE_MS_MAX = 300_000;

/** The most nodes that a hello names as out of reach. */
const NAMED_MAX = 8;

/**
 * Limit for dialling an owner: another node can carry the messages. A session has its lease for
 * that: an owner with little processor time takes long to answer, and being carried costs more.
 */
const OWNER_MS_MAX = 1000;
const OWNER_LEASED_MS_MAX = 4000;

/** Limit for dialling one address. */
const DIAL_MS_MAX = 10_000;
/** The least limit for dialling one of several addresses, and the same with a lease. */
const DIAL_ONE_MS_MIN = 2000;
const DIAL_LEASED_MS_MIN = 250;

/** The least limit for the answer to the hello of a session with a lease. */
const WELCOME_LEASED_MS_MIN = 250;

export class Route {
  /** In an order of this client: those of a dead node spread over all others. */
  #addresses;
  #hidesToken;
  #parse;
  /** The addresses that are dialled before the next pause. */
  #round;
  /** Rounds without an answer. */
  #rounds = 0;
  /** The address that last welcomed the session. */
  #good;
  #hops = 0;
  /** The nodes that were out of reach: { key, until, pause }. */
  #unreachable = [];
  /** The address to dial; the node that named it as an owner; whether it carries the messages. */
  target;
  /** Whether several nodes may be dialled. */
  isCluster;

  /**
   * @param addresses what readAddresses() made
   * @param hidesToken whether the client has a token that must not be sent in clear
   * @param parse     parses an address that a node names
   * @param random    below 1, for the order of the addresses
   */
  constructor(addresses, hidesToken, parse, random) {
    this.#addresses = shuffled(addresses, random);
    this.#hidesToken = hidesToken;
    this.#parse = parse;
    this.isCluster = addresses.length > 1;
    this.#beginRound();
  }

  /** The limit in milliseconds for dialling the target, for a session with this lease. */
  limit(lease) {
    const eighth = lease === undefined ? Infinity : lease / 8;
    if (this.target.namedBy !== undefined) return lease === undefined ? OWNER_MS_MAX : Math.min(eighth, OWNER_LEASED_MS_MAX);
    if (!this.isCluster) return DIAL_MS_MAX;
    const even = Math.max(DIAL_MS_MAX / this.#addresses.length, DIAL_ONE_MS_MIN);
    // A slower network gets more time in each round.
    return Math.min(Math.min(Math.max(eighth, DIAL_LEASED_MS_MIN), even) * 2 ** this.#rounds, DIAL_MS_MAX);
  }

  /** The target has welcomed the session. */
  reached() {
    this.#good = this.target.address;
    this.#unreachable = removed(this.#unreachable, ({ key }) => key === keyOf(this.#good));
    this.#rounds = 0;
    this.#beginRound();
  }

  /** Notes that a connection lasted: a further `moved` no longer means that nodes disagree. */
  settled() {
    this.#hops = 0;
  }

  /**
   * Whether no further attempt can succeed. After the refusal of an owner before the hello one can:
   * the node that named it can carry the messages.
   */
  isFinal({ code }, isGreeted) {
    // A proxy answers a handshake so while its service restarts.
    const isProxy = this.#good !== undefined && code === 'other';
    return refusalOf(code).final && (isGreeted || (this.target.namedBy === undefined && !isProxy));
  }

  /** Chooses the next target after an attempt that failed. Returns whether to dial it at once. */
  failed({ code, to }, isGreeted, now) {
    const { address, namedBy, carries } = this.target;
    if (code === 'moved') return this.#follow(address, carries, to, now);
    if (!isGreeted && this.isCluster) this.#noteUnreachable(keyOf(address), now);
    if (namedBy === undefined || isGreeted) return this.#advance();
    this.target = { address: namedBy, carries: true };
    return true;
  }

  /** Notes that a node is out of reach: for longer, the more often in a row that is so. */
  #noteUnreachable(key, now) {
    let pause = UNREACHABLE_MS_MIN;
    each(this.#unreachable, (it) => {
      if (it.key === key) pause = Math.min(it.pause * 2, UNREACHABLE_MS_MAX);
    });
    this.#unreachable = removed(this.#unreachable, (it) => it.key === key);
    append(this.#unreachable, { key, until: now + pause, pause });
    if (this.#unreachable.length > NAMED_MAX) dropFirst(this.#unreachable, 1);
  }

  /** Returns the members of a hello by which a node leads the client on. */
  way(now) {
    const avoided = removed(this.#unreachable, ({ until }) => until <= now);
    const carry = this.target.carries || undefined;
    if (avoided.length === 0) return { carry };
    const named = [];
    let home = 0;
    each(avoided, ({ key, until }) => {
      append(named, key);
      home = Math.max(home, Math.round(until - now));
    });
    return { carry, unreachable: plainList(named), 'home-ms': home };
  }

  /** Returns the limit in milliseconds for the answer to the hello of a session with this lease. */
  welcomeLimit(lease, now) {
    // A node keeps the hello until the locks of a node out of reach have another owner.
    const isKept = some(this.#unreachable, ({ until }) => until > now);
    return Math.max(lease / (isKept ? 2 : 4), WELCOME_LEASED_MS_MIN);
  }

  /** Chooses the next target after the node that had welcomed the session sent `moved`. */
  moved(to, now) {
    // A node that carried sends its client home.
    each(this.#unreachable, (it) => {
      it.until = now;
    });
    return this.#follow(this.#good, false, to, now);
  }

  /** Follows a node to the owner that it named, or lets the node carry the messages there. */
  #follow(from, carried, to, now) {
    this.isCluster = true;
    this.#rounds = 0;
    const owner = typeof to === 'string' ? this.#parse(to) : undefined;
    if (owner === undefined || keyOf(owner) === keyOf(from) || this.#hops >= HOPS_MAX) {
      this.#hops = 0;
      this.#advance();
      return false;
    }
    this.#hops++;
    const isUnreachable = some(this.#unreachable, ({ key, until }) => until > now && key === keyOf(owner));
    if (this.#mayFollow(owner) && !isUnreachable) this.target = { address: owner, namedBy: from, carries: false };
    else if (!carried) this.target = { address: from, carries: true };
    else {
      this.#advance();
      return false;
    }
    return true;
  }

  /**
   * Whether the client may send its messages and its token to the owner: encrypted if the listed
   * nodes get them so. A client of a Unix socket has sent no token, so it stays there.
   */
  #mayFollow(owner) {
    if (owner.url === undefined || this.#addresses[0].url === undefined) return false;
    if (isEncrypted(this.#addresses[0]) && !isEncrypted(owner)) return false;
    return !this.#hidesToken || !isInClear(owner);
  }

  /** Goes on with the next known address; after the last one, from the start after a pause. */
  #advance() {
    if (this.#round.length === 0) {
      this.#rounds++;
      this.#beginRound();
      return false;
    }
    this.#takeNext();
    return true;
  }

  /** Begins with the address that was last good. */
  #beginRound() {
    this.#round = this.#good === undefined ? [] : [this.#good];
    each(this.#addresses, (address) => {
      if (this.#good === undefined || keyOf(address) !== keyOf(this.#good)) append(this.#round, address);
    });
    this.#takeNext();
  }

  #takeNext() {
    this.target = { address: this.#round[0], carries: false };
    dropFirst(this.#round, 1);
  }
}

/** Returns the addresses in an order that a random number below 1 chooses: as they are by zero. */
function shuffled(addresses, random) {
  const order = mapped(addresses, (address) => address);
  for (let first = 0; first < order.length; first++) {
    const scaled = random * (order.length - first);
    const chosen = first + Math.floor(scaled);
    random = scaled - Math.floor(scaled);
    const address = order[chosen];
    order[chosen] = order[first];
    order[first] = address;
  }
  return order;
}

/** Returns a key that equal addresses share. */
function keyOf({ path, url }) {
  return url === undefined ? `unix:${path}` : url.href;
}
