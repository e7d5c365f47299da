//! A cluster that loses a node under many sessions, with less processor time than it likes.

mod clients;
mod limit;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

use servers::{Address, NavlocksNodes};
use tokio::runtime::Builder;

use super::cluster::Ground;
use super::{OURS, Plan, Suite, Target};
use crate::harness::Unit::{Count, Nanoseconds};
use crate::harness::{Contest, Options, Row, Scale};
use clients::{Clients, SESSIONS_MAX};
use limit::CpuLimit;

pub(crate) use clients::{WORD as CLIENTS, serve as serve_clients};

pub(super) const SUITE: Suite = Suite {
    name: "scale",
    about: "many sessions with a lock each, three nodes, one of which is killed",
    plan,
    targets,
};

const PARTITIONS: usize = 300;

/// When the survivors are looked at after the kill.
const LOOK_AFTER: Duration = Duration::from_secs(10);

/// The cases of a trial, in the order of its figures. The last one is a time.
const FREE: [&str; 7] = [
    "locks-lost",
    "grants-failed",
    "listen-overflows",
    "silent-after-10s",
    "carried-percent-after-10s",
    "connects-per-displaced",
    "grant-past-node-lease",
];
/// The same with less than all processors.
const STARVED: [&str; 7] = [
    "locks-lost",
    "grants-failed",
    "listen-overflows",
    "silent-after-10s",
    "carried-percent-after-10s",
    "connects-per-displaced",
    "grant-past-node-lease-starved",
];

fn plan(options: &Options) -> Plan {
    servers::raise_open_files_limit();
    let scale = options.scale;
    let sessions = options.scaled(scale.sessions);
    let mut notes = vec![format!(
        "{sessions} sessions with a lock each in {PARTITIONS} partitions, node lease {:?}, session lease {:?}; one of three nodes is killed",
        scale.node_lease, scale.lease
    )];
    let limited = scale.cores.map(CpuLimit::set);
    match (scale.cores, &limited) {
        (Some(cores), Some(Ok(_))) => {
            notes.push(format!("nodes, etcd and clients together have {cores} of a processor"));
        }
        (Some(_), Some(Err(error))) => {
            notes.push(format!(
                "no limit of processor time: control groups cannot be used: {error}"
            ));
        }
        _ => {}
    }
    let limit = limited.and_then(Result::ok);
    let cases = if limit.is_some() { &STARVED } else { &FREE };
    let contest = Contest::new(cases, Count).last_in(Nanoseconds).side(OURS, move || {
        Box::new(move || {
            let _limit = &limit;
            trial(sessions, scale).unwrap_or_else(|error| panic!("{error}"))
        })
    });
    Plan { notes, contests: vec![contest] }
}

/// Kills a node under so many sessions. Returns the figures of the cases.
fn trial(sessions: usize, scale: Scale) -> io::Result<Vec<f64>> {
    let runtime = Rc::new(Builder::new_current_thread().enable_all().build()?);
    let start = |etcd: &str| NavlocksNodes::start_leased(3, etcd, (scale.node_lease, scale.lease));
    let ground = Ground::start_by(runtime, start).map_err(io::Error::other)?;
    let addresses = ground.nodes.borrow().addresses().to_vec();
    let firsts = (0..sessions).step_by(SESSIONS_MAX);
    let extents = firsts.map(|first| (first, SESSIONS_MAX.min(sessions - first)));
    let clients = extents.map(|extent| Clients::start(&ground.url(), extent, PARTITIONS));
    let mut clients = clients.collect::<io::Result<Vec<Clients>>>()?;
    clients.iter_mut().try_for_each(|it| it.hear().map(drop))?;
    let displaced = metric(&addresses[0], "sessions")?.max(1.0);
    let survivors = &addresses[1..];
    let sum = |name: &str| survivors.iter().map(|node| metric(node, name)).sum::<io::Result<f64>>();
    let (connects, overflows) = (sum("connections_accepted_total")?, listen_overflows()?);
    let killed = Instant::now();
    ground.nodes.borrow_mut().kill(0);
    let grants = clients::report(&mut clients, "killed")?;
    std::thread::sleep(LOOK_AFTER.saturating_sub(killed.elapsed()));
    let late = clients::report(&mut clients, "report")?;
    let carried = sum("connections_carried")?;
    let connects = sum("connections_accepted_total")? - connects;
    let overflows = listen_overflows()? - overflows;
    let past = grants.slowest.saturating_sub(scale.node_lease);
    Ok(vec![
        late.lost as f64,
        grants.failed as f64,
        overflows,
        late.silent as f64,
        carried * 100.0 / sessions as f64,
        connects / displaced,
        past.as_nanos() as f64,
    ])
}

/// Reads one of the metrics of a node.
fn metric(node: &Address, name: &str) -> io::Result<f64> {
    let Address::Tcp(address) = node else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    // Some have labels.
    let lines = text.lines().filter_map(|line| line.strip_prefix("navlocks_")?.strip_prefix(name));
    let lines = lines.filter(|line| line.starts_with([' ', '{']));
    let values: Option<Vec<f64>> =
        lines.map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
    let values = values.filter(|values| !values.is_empty());
    let values = values.ok_or_else(|| io::Error::other(format!("no metric {name}: {text}")))?;
    Ok(values.iter().sum())
}

/// Returns how many connections found the queue of a listener full, on this machine.
fn listen_overflows() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/net/netstat")?;
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    let found = pairs.find(|(name, _)| *name == "ListenOverflows");
    Ok(found.and_then(|(_, value)| value.parse().ok()).unwrap_or_default())
}

fn targets(rows: &[Row]) -> Vec<Target> {
    let limit = |case: &str| match case {
        "carried-percent-after-10s" => Some(("percent of the sessions carried after 10 s", 1.0)),
        "connects-per-displaced" => Some(("connects for each displaced session", 1.5)),
        "grant-past-node-lease" => Some(("nanoseconds from the node lease to the last grant", 2e9)),
        "grant-past-node-lease-starved" => {
            Some(("nanoseconds from the node lease to the last grant, starved", 5e9))
        }
        "locks-lost" => Some(("locks lost", 0.0)),
        "grants-failed" => Some(("grants that failed", 0.0)),
        "listen-overflows" => Some(("connections that found a full queue", 0.0)),
        "silent-after-10s" => Some(("sessions without a connection after 10 s", 0.0)),
        _ => None,
    };
    let targets = rows.iter().filter_map(|row| {
        let (text, limit) = limit(&row.case)?;
        let measured = row.ours().rounds.iter().copied().fold(0.0, f64::max);
        Some(Target { text: text.to_owned(), measured, limit })
    });
    targets.collect()
}
