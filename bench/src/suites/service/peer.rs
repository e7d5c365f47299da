//! The peers of each case.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::case::{Cases, Endpoint, Extent};
use super::echo::Echo;
use super::etcd::Etcd;
use super::navlocks::Navlocks;
use super::postgres::Postgres;
use super::redis::Redis;
use crate::harness::Unit::{Bytes, Count, Nanoseconds, Rate};
use crate::harness::{Contest, Options};
use crate::suites::{OURS, Plan};
use servers::{self as server, Program, Server, Transport};

/// The names of the peers that have targets.
pub(super) const REDIS: &str = "redis";
pub(super) const POSTGRES: &str = "postgres";

/// One side of a contest.
#[derive(Clone, Copy)]
struct Peer {
    word: &'static str,
    program: Program,
    cases: &'static dyn Cases,
    /// How many clients may be connected at the same time.
    clients_max: usize,
}

const OUR_OWN: Peer = Peer {
    word: OURS,
    program: server::NAVLOCKS,
    cases: &Navlocks::Exclusive,
    clients_max: usize::MAX,
};
const ECHO: Peer =
    Peer { word: "echo", program: server::ECHO, cases: &Echo, clients_max: usize::MAX };
const SPIN: Peer = Peer {
    word: "redis-spin",
    program: server::REDIS,
    cases: &Redis::Spin,
    clients_max: usize::MAX,
};
const PLAIN: Peer = Peer { word: REDIS, ..SPIN };
const POLL: Peer = Peer { word: "redis-poll", cases: &Redis::Poll, ..SPIN };
const PIPED: Peer = Peer { word: "redis-piped", cases: &Redis::Piped, ..SPIN };
const ADVISORY: Peer =
    Peer { word: POSTGRES, program: server::POSTGRES, cases: &Postgres, clients_max: 100 };
const RAFT: Peer =
    Peer { word: "etcd", program: server::ETCD, cases: &Etcd, clients_max: usize::MAX };

/// So many holders at a time, in the cases with a limit. The script of Redis has the same number.
const LIMIT: u32 = 4;
const LIMITED: [Peer; 2] = [
    Peer { cases: &Navlocks::Limited(LIMIT), ..OUR_OWN },
    Peer { word: "redis-semaphore", cases: &Redis::Semaphore, ..SPIN },
];

const CYCLING: [Peer; 6] = [OUR_OWN, ECHO, PLAIN, PIPED, ADVISORY, RAFT];
const PASSING_ON: [Peer; 6] = [OUR_OWN, ECHO, SPIN, POLL, ADVISORY, RAFT];
const IDLE: [Peer; 5] = [OUR_OWN, ECHO, PLAIN, ADVISORY, RAFT];

/// Redis as its users run it who want to keep locks. It polls: a thousand clients that spin would
/// be the load.
const LOGGED: Peer =
    Peer { word: "redis-aof", program: server::REDIS_AOF, cases: &Redis::Poll, ..SPIN };
/// As many clients of PostgreSQL hold locks as try to get them.
const RESTARTED: [Peer; 4] = [OUR_OWN, LOGGED, Peer { clients_max: 90, ..ADVISORY }, RAFT];

const PROGRAMS: [Program; 5] =
    [server::NAVLOCKS, server::ECHO, server::REDIS, server::POSTGRES, server::ETCD];

/// The methods of the peers, for the reader of the table.
const NOTES: [&str; 8] = [
    "navlocks: Locks::connect; a waiting client is in the service's queue; a release has no answer and travels with the next request",
    "redis: SET NX PX, and a script that compares and deletes; redis-piped does not wait for the release, it travels with the next request",
    "redis has no queue: redis-spin asks again at once, redis-poll every 50 ms",
    "redis-semaphore: a sorted set of holders by time, and a script that counts them; its users ask again when it is full",
    "postgres: advisory locks by prepared statements; a waiting client is blocked in the server",
    "etcd: lock API over gRPC, one member, fsync on; a waiting client is blocked in the server; TCP only",
    "echo: one bare round trip of 64 bytes; no lock",
    "one load generator of one thread for all clients, each with a connection; every server is a process of its own",
];

/// How many clients are connected in the crowd, and how many of them work.
const CROWD: usize = 10_000;
const CROWD_WORKING: usize = 64;
/// The crowd connects and leaves in every round: all crowds together would need too many open
/// files.
const CROWD_ROUNDS: usize = 3;
/// How many clients hold a lock when the server is killed, and how many rounds there are.
const HOLDERS: usize = 1000;
const RESTARTS: usize = 5;
/// Files that are open besides those of the crowd.
const OTHER_FILES: usize = 500;

/// Returns how many files this process opens for so many clients: over a Unix socket, a client of
/// navlocks has one more, which shows that its process lives.
fn open_files(clients: usize, transport: Transport) -> u64 {
    let each = if transport == Transport::Unix { 2 } else { 1 };
    (clients * each + OTHER_FILES) as u64
}

/// Returns the sentence for a case that cannot run here for want of files.
fn too_many_files(case: &str, needed: u64, max: u64) -> Option<String> {
    let text =
        format!("left out: {case}: it needs {needed} open files, and `ulimit -Hn` allows {max}");
    (needed > max).then_some(text)
}

/// The servers that run, by the name of their program.
type Running = BTreeMap<&'static str, Rc<Server>>;

pub(super) fn plan(options: &Options) -> Plan {
    let files_max = server::raise_open_files_limit();
    let mut notes: Vec<String> = NOTES.map(String::from).into();
    let mut running = Running::new();
    let mut versions = Vec::new();
    let programs = if options.alone { &PROGRAMS[..1] } else { &PROGRAMS[..] };
    for program in programs {
        match (program.version)().and_then(|version| Ok((version, (program.start)()?))) {
            Ok((version, server)) => {
                versions.push(version);
                running.insert(program.name, Rc::new(server));
            }
            Err(problem) => notes.push(format!("left out: {}: {problem}", program.name)),
        }
    }
    notes.insert(0, format!("servers: {}", versions.join(", ")));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = Rc::new(runtime.expect("a runtime of one thread can be had"));
    let extent = if options.quick {
        Extent {
            time: Duration::from_millis(20),
            hand_overs: 5,
            hand_over_time: Duration::from_millis(20),
            settle: Duration::ZERO,
            probe: Duration::from_millis(100),
        }
    } else {
        Extent {
            time: Duration::from_millis(500),
            hand_overs: 200,
            hand_over_time: Duration::from_millis(2500),
            settle: Duration::from_secs(3),
            probe: Duration::from_secs(3),
        }
    };
    let ground = Ground { running, runtime, extent };
    let mut contests = Vec::new();
    for transport in [Transport::Tcp, Transport::Unix] {
        for clients in [1, 16, 64] {
            contests.push(ground.contest(
                &[&format!("cycle-{clients}-{transport}")],
                Rate,
                &CYCLING,
                transport,
                move |cases, place| cases.cycle(place, clients),
            ));
        }
    }
    for transport in [Transport::Tcp, Transport::Unix] {
        contests.push(ground.contest(
            &[&format!("limit-16-{transport}")],
            Rate,
            &LIMITED,
            transport,
            |cases, place| cases.cycle(place, 16),
        ));
    }
    let mut has_files = |case: &str, clients, transport| {
        let reason = too_many_files(case, open_files(clients, transport), files_max);
        let has_files = reason.is_none();
        notes.extend(reason);
        has_files
    };
    let crowd = options.scaled(CROWD);
    let crowded: Vec<Peer> = IDLE.into_iter().filter(|peer| peer.clients_max >= CROWD).collect();
    for transport in [Transport::Tcp, Transport::Unix] {
        let case = format!("crowd-10k-{transport}");
        if has_files(&case, crowd + CROWD_WORKING, transport) {
            let contest =
                ground.contest(&[&case], Rate, &crowded, transport, move |cases, place| {
                    cases.crowd(place, crowd, CROWD_WORKING)
                });
            contests.push(contest.rounds_max(CROWD_ROUNDS));
        }
    }
    for transport in [Transport::Tcp, Transport::Unix] {
        let case = |part: &str| format!("handoff-{part}-{transport}");
        contests.push(ground.contest(
            &[&case("p50"), &case("p99")],
            Nanoseconds,
            &PASSING_ON,
            transport,
            |cases, place| cases.hand_over(place),
        ));
    }
    if has_files("memory-idle, memory-holding", crowd, Transport::Unix) {
        contests.push(ground.memory(crowd));
    }
    let holders = options.scaled(HOLDERS);
    if has_files("restart", 2 * holders, Transport::Tcp) {
        contests.push(ground.restart(holders).rounds_max(RESTARTS));
    }
    Plan { notes, contests }
}

struct Ground {
    running: Running,
    runtime: Rc<Runtime>,
    extent: Extent,
}

impl Ground {
    /// Returns the same case on all peers that run and can be reached this way.
    fn contest(
        &self,
        cases: &[&str],
        unit: crate::harness::Unit,
        peers: &[Peer],
        transport: Transport,
        case: impl Fn(&dyn Cases, Endpoint) -> crate::harness::Round + Copy + 'static,
    ) -> Contest {
        let mut contest = Contest::new(cases, unit);
        for &peer in peers {
            let Some(server) = self.running.get(peer.program.name) else { continue };
            let Some(address) = server.address(transport) else { continue };
            let place = Endpoint {
                runtime: Rc::clone(&self.runtime),
                server: Rc::clone(server),
                address: address.clone(),
                extent: self.extent,
            };
            contest = contest.side(peer.word, move || case(peer.cases, place));
        }
        contest
    }

    /// Each side has a server of its own: the others go on with those that run.
    fn restart(&self, clients: usize) -> Contest {
        let mut contest = Contest::new(&["restart", "restart-lost"], Nanoseconds).last_in(Count);
        for peer in RESTARTED {
            if self.running.contains_key(peer.program.name) {
                let (runtime, extent) = (Rc::clone(&self.runtime), self.extent);
                let clients = clients.min(peer.clients_max);
                contest = contest.side(peer.word, move || {
                    let server =
                        (peer.program.start)().unwrap_or_else(|problem| panic!("{problem}"));
                    let Some(address) = server.address(Transport::Tcp).cloned() else {
                        unreachable!("every server has a port")
                    };
                    let place = Endpoint { runtime, server: Rc::new(server), address, extent };
                    peer.cases.restart(place, clients)
                });
            }
        }
        contest
    }

    fn memory(&self, clients: usize) -> Contest {
        let mut contest = Contest::new(&["memory-idle", "memory-holding"], Bytes);
        for peer in IDLE {
            if self.running.contains_key(peer.program.name) {
                let (runtime, extent) = (Rc::clone(&self.runtime), self.extent);
                let clients = clients.min(peer.clients_max);
                contest = contest.side(peer.word, move || {
                    peer.cases.memory(runtime, peer.program, extent, clients)
                });
            }
        }
        contest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crowd_that_needs_more_files_than_the_limit_is_left_out_with_a_sentence() {
        let needed = open_files(10_000, Transport::Unix);
        assert_eq!(needed, (2 * 10_000 + OTHER_FILES) as u64);
        assert_eq!(too_many_files("crowd", needed, needed), None);
        let text = too_many_files("crowd", needed, 20_000).unwrap();
        let parts = ["left out: crowd", &format!("needs {needed} open files"), "allows 20000"];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}
