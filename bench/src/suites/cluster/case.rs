//! The cases with clients that work, and what they cost etcd.

use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks::Locks;

use super::failover;
use super::ground::Ground;
use super::{CARRIED, ETCD, SERVICE};
use crate::harness::Unit::{Count, Nanoseconds, Rate};
use crate::harness::{Contest, Options, Round};
use crate::suites::service::case::{Cases, Endpoint, Extent};
use crate::suites::service::etcd::Etcd;
use crate::suites::service::navlocks::Navlocks;
use crate::suites::{OURS, Plan};
use servers::{self as server, Address, Server, Transport};

const NOTES: [&str; 5] = [
    "navlocks: three nodes on three members of etcd; the clients follow the first node to the owner of their locks",
    "carried: a client of another node's Unix socket, which carries its messages to the owner",
    "service: one service over TCP, the same program without a cluster",
    "etcd: lock API over gRPC, the same three members, fsync on",
    "writes: revisions of etcd for 1,000 cycles of one client, renewals of nodes included; at least one is counted",
];

/// A way to locks: its word, its cases, and where its clients connect to.
struct Side {
    word: &'static str,
    cases: &'static dyn Cases,
    place: Endpoint,
}

pub(super) fn plan(options: &Options) -> Plan {
    server::raise_open_files_limit();
    let mut notes: Vec<String> = NOTES.map(String::from).into();
    match contests(options, &mut notes) {
        Ok(contests) => Plan { notes, contests },
        Err(problem) => {
            notes.push(format!("left out: {OURS}: {problem}"));
            Plan { notes, contests: Vec::new() }
        }
    }
}

fn contests(options: &Options, notes: &mut Vec<String>) -> Result<Vec<Contest>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = Rc::new(runtime.map_err(|error| error.to_string())?);
    let node_lease = options.quick.then_some(Duration::from_secs(1));
    let ground = Rc::new(Ground::start(Rc::clone(&runtime), node_lease)?);
    let service = Rc::new((server::NAVLOCKS.start)()?);
    let extent = Extent {
        time: Duration::from_millis(if options.quick { 20 } else { 500 }),
        hand_overs: if options.quick { 5 } else { 200 },
        hand_over_time: Duration::from_millis(if options.quick { 20 } else { 2500 }),
        settle: Duration::ZERO,
        probe: Duration::ZERO,
    };
    let place = |server: &Rc<Server>, address: Address| Endpoint {
        runtime: Rc::clone(&runtime),
        server: Rc::clone(server),
        address,
        extent,
    };
    let owner = ground.owner()?;
    let other = (owner + 1) % ground.nodes.borrow().addresses().len();
    let tcp = service.address(Transport::Tcp).cloned().ok_or("the service has no port")?;
    let member = ground.members.addresses()[0].parse().map_err(|_| "etcd has no port")?;
    let through_other = ground.nodes.borrow().addresses()[other].clone();
    let carried = ground.nodes.borrow().sockets()[other].clone();
    let side = |word, cases, address| Side { word, cases, place: place(&service, address) };
    let mut sides = vec![
        // The first message goes to another node, which names the owner.
        side(OURS, &Navlocks::Exclusive as &dyn Cases, through_other),
        side(SERVICE, &Navlocks::Exclusive, tcp),
        side(ETCD, &Etcd, Address::Tcp(member)),
    ];
    match answers(&runtime, &carried) {
        Ok(()) => sides.push(side(CARRIED, &Navlocks::Exclusive, carried)),
        Err(problem) => notes.push(format!("left out: {CARRIED}: {problem}")),
    }
    let sides = Rc::new(sides);
    let mut contests = Vec::new();
    for clients in [1, 16, 64] {
        let cycle = move |cases: &dyn Cases, place| cases.cycle(place, clients);
        contests.push(contest(&[&format!("cycle-{clients}")], Rate, &ground, &sides, cycle));
    }
    let hand_over = |cases: &dyn Cases, place| cases.hand_over(place);
    contests.push(contest(
        &["handoff-p50", "handoff-p99"],
        Nanoseconds,
        &ground,
        &sides,
        hand_over,
    ));
    contests.push(writes(&ground, &sides));
    contests.extend(failover::contests(&ground, options));
    Ok(contests)
}

/// Whether a client at this address gets a lock.
fn answers(runtime: &tokio::runtime::Runtime, address: &Address) -> Result<(), String> {
    let Address::Unix(path) = address else { return Err("it is no socket".to_owned()) };
    runtime.block_on(async {
        let connect = Locks::connect(format!("unix:{}", path.display()));
        let locks = connect.timeout(Duration::from_secs(3)).await;
        let locks = locks.map_err(|error| error.to_string())?;
        drop(locks.request("carried").await.map_err(|error| error.to_string())?);
        locks.disconnect().await;
        Ok(())
    })
}

/// The same case on all sides. The ground stays as long as a round may be run.
fn contest(
    cases: &[&str],
    unit: crate::harness::Unit,
    ground: &Rc<Ground>,
    sides: &Rc<Vec<Side>>,
    case: impl Fn(&dyn Cases, Endpoint) -> Round + Copy + 'static,
) -> Contest {
    let mut contest = Contest::new(cases, unit);
    for Side { word, cases, place } in &**sides {
        let (ground, cases, place) = (Rc::clone(ground), *cases, place.clone());
        contest = contest.side(word, move || {
            let mut round = case(cases, place);
            Box::new(move || {
                let _running = &ground;
                round()
            })
        });
    }
    contest
}

/// Writes to etcd for 1,000 cycles of one client, after it has connected.
fn writes(ground: &Rc<Ground>, sides: &Rc<Vec<Side>>) -> Contest {
    let mut contest = Contest::new(&["writes-per-1k"], Count);
    for Side { word, cases, place } in sides.iter().filter(|side| side.word != SERVICE) {
        let (ground, cases, place) = (Rc::clone(ground), *cases, place.clone());
        contest = contest.side(word, move || {
            let mut cycle = cases.cycle(place, 1);
            Box::new(move || {
                let revision = || ground.revision().unwrap_or_else(|error| panic!("etcd: {error}"));
                // The first cycles reserve tokens.
                cycle();
                let (before, start) = (revision(), Instant::now());
                let cost: f64 = cycle().iter().sum();
                let cycles = start.elapsed().as_nanos() as f64 / cost;
                let writes = (revision() - before).max(1) as f64;
                vec![writes * 1000.0 / cycles]
            })
        });
    }
    contest
}
