//! A service under abuse: how long a bystander waits for its lock while clients of another tenant
//! take all they can.

mod resume;

use std::future::IntoFuture;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use navlocks::Locks;
use tokio::runtime::{Builder, Runtime};

use super::{OURS, Plan, Suite, Target};
use crate::harness::Unit::Nanoseconds;
use crate::harness::{Contest, Options, Row};
use servers::{self as server, Address, Server, Transport};

/// The name of the side without abuse.
const IDLE: &str = "idle";

/// The limit of a bystander's slowest cycle under abuse, and beside a session that resumes.
const CYCLE_NANOSECONDS_MAX: f64 = 50e6;
const RESUME_NANOSECONDS_MAX: f64 = 20e6;

pub(super) const SUITE: Suite = Suite {
    name: "abuse",
    about: "the slowest cycle of a bystander while other clients abuse the service",
    plan,
    targets,
};

/// A kind of abuse and the number of abusers, which continue until they are stopped.
type Abuse = fn(String, usize, Arc<AtomicBool>) -> io::Result<()>;

const CASES: [(&str, Abuse, usize); 5] = [
    ("queries", ask_for_all, 60),
    ("events", publish, 200),
    ("places", wait_in_line, 500),
    ("grants", grant_to_all, 10_000),
    ("clients", end_all, 5_000),
];

fn plan(options: &Options) -> Plan {
    server::raise_open_files_limit();
    let mut notes = vec![
        "navlocks: the slowest cycle of a bystander over TCP, while the abusers come over the Unix socket, whose user has a share of its own".to_string(),
        "idle: the same without abusers".to_string(),
    ];
    let server = match (server::NAVLOCKS.start)() {
        Ok(server) => Rc::new(server),
        Err(problem) => {
            notes.push(format!("left out: {OURS}: {problem}"));
            return Plan { notes, contests: Vec::new() };
        }
    };
    let time = Duration::from_millis(if options.quick { 20 } else { 2000 });
    let mut contests = Vec::from(CASES.map(|(case, abuse, clients)| {
        let clients = if options.quick { 3 } else { clients };
        let (abused, idle) = (server.clone(), server.clone());
        Contest::new(&[case], Nanoseconds)
            .rounds_max(3)
            .side(OURS, move || {
                Box::new(move || {
                    let over = Arc::new(AtomicBool::new(false));
                    let abusers = begin(&abused, abuse, clients, &over);
                    let slowest = bystander(&abused, time);
                    over.store(true, Ordering::Release);
                    abusers.join().expect("the abusers end").expect("the abusers are served");
                    vec![slowest]
                })
            })
            .side(IDLE, move || Box::new(move || vec![bystander(&idle, time)]))
    }));
    contests.push(resume::contest(server, options.scaled(resume::LOCKS)));
    Plan { notes, contests }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime of one thread")
}

/// Returns the nanoseconds of the slowest cycle of a client within a time.
fn bystander(server: &Server, time: Duration) -> f64 {
    let begun = Instant::now();
    slowest_cycle(server, || (true, begun.elapsed() >= time))
}

/// Returns the same between two moments of another thread.
fn bystander_until(server: &Server, begins: &AtomicBool, ends: &AtomicBool) -> f64 {
    slowest_cycle(server, || (begins.load(Ordering::Acquire), ends.load(Ordering::Acquire)))
}

/// Returns the slowest cycle until the end; `stage` says whether cycles count, and whether to end.
fn slowest_cycle(server: &Server, stage: impl Fn() -> (bool, bool)) -> f64 {
    let Some(Address::Tcp(address)) = server.address(Transport::Tcp) else {
        panic!("the service has no TCP port");
    };
    let url = format!("ws://{address}");
    runtime().block_on(async {
        let locks = Locks::connect(url).await.expect("the bystander is served");
        let locks = locks.partition("bystander");
        let mut slowest = Duration::ZERO;
        loop {
            let asked = Instant::now();
            drop(locks.request("name").await.expect("the bystander is served"));
            let cycle = asked.elapsed();
            let (counts, is_over) = stage();
            // The last cycle counts too: it may be the slowest.
            slowest = slowest.max(if counts { cycle } else { Duration::ZERO });
            if is_over {
                break;
            }
        }
        locks.disconnect().await;
        slowest.as_nanos() as f64
    })
}

fn socket_of(server: &Server) -> PathBuf {
    let Some(Address::Unix(path)) = server.address(Transport::Unix) else {
        panic!("the service has no Unix socket");
    };
    path.clone()
}

/// Starts the abusers in a thread of their own.
fn begin(
    server: &Server,
    abuse: Abuse,
    clients: usize,
    over: &Arc<AtomicBool>,
) -> JoinHandle<io::Result<()>> {
    let (url, over) = (format!("unix:{}", socket_of(server).display()), over.clone());
    std::thread::spawn(move || abuse(url, clients, over))
}

/// Runs the same for this many clients at once.
fn each<F: Future<Output = io::Result<()>> + 'static>(
    clients: usize,
    work: impl Fn(usize) -> F,
) -> io::Result<()> {
    runtime().block_on(tokio::task::LocalSet::new().run_until(async {
        let tasks: Vec<_> = (0..clients).map(|n| tokio::task::spawn_local(work(n))).collect();
        for task in tasks {
            task.await.map_err(io::Error::other)??;
        }
        Ok(())
    }))
}

/// All clients query everything, again and again, while one holds many locks.
fn ask_for_all(url: String, clients: usize, over: Arc<AtomicBool>) -> io::Result<()> {
    each(clients, |number| {
        let (url, over) = (url.clone(), over.clone());
        async move {
            let locks = Locks::connect(url).await.map_err(io::Error::other)?;
            let mut held = Vec::new();
            if number == 0 {
                for name in 0..20_000 {
                    let lock = locks.request(format!("name {name}")).await;
                    held.push(lock.map_err(io::Error::other)?);
                }
            }
            while !over.load(Ordering::Acquire) {
                let _refused_or_answered = locks.query().await;
            }
            Ok(())
        }
    })
}

/// All clients subscribe, and one causes large events.
fn publish(url: String, clients: usize, over: Arc<AtomicBool>) -> io::Result<()> {
    each(clients, |number| {
        let (url, over) = (url.clone(), over.clone());
        async move {
            let locks = Locks::connect(url).await.map_err(io::Error::other)?;
            let names: Vec<String> = (0..1000).map(|n| format!("{n}{}", "x".repeat(900))).collect();
            let events = locks.events();
            while !over.load(Ordering::Acquire) {
                if number == 0 {
                    let names = names.iter().map(String::as_str).collect::<Vec<_>>();
                    let scope = navlocks::Scope::new(names).map_err(io::Error::other)?;
                    drop(locks.request(scope).await.map_err(io::Error::other)?);
                } else {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            drop(events);
            Ok(())
        }
    })
}

/// All clients wait for one lock, and query their places.
fn wait_in_line(url: String, clients: usize, over: Arc<AtomicBool>) -> io::Result<()> {
    each(clients, |_| {
        let (url, over) = (url.clone(), over.clone());
        async move {
            let locks = Locks::connect(url).await.map_err(io::Error::other)?;
            let asks = locks.clone();
            let waits = tokio::task::spawn_local(async move {
                let _lock = locks.request("line").await;
                std::future::pending::<()>().await;
            });
            while !over.load(Ordering::Acquire) {
                asks.place().await.map_err(io::Error::other)?;
            }
            waits.abort();
            Ok(())
        }
    })
}

/// One client releases a lock to all others at once, again and again.
fn grant_to_all(url: String, clients: usize, over: Arc<AtomicBool>) -> io::Result<()> {
    each(1, |_| {
        let (url, over) = (url.clone(), over.clone());
        async move {
            let holder = Locks::connect(url.clone()).await.map_err(io::Error::other)?;
            let waiters = Locks::connect(url).await.map_err(io::Error::other)?;
            while !over.load(Ordering::Acquire) {
                let held = holder.request("crowd").await.map_err(io::Error::other)?;
                let waits = |_| {
                    let request = waiters.request("crowd").shared().into_future();
                    tokio::task::spawn_local(async move { request.await.map(drop) })
                };
                let waiting: Vec<_> = (0..clients).map(waits).collect();
                // The answer comes after the requests.
                tokio::task::yield_now().await;
                waiters.place().await.map_err(io::Error::other)?;
                drop(held);
                for granted in waiting {
                    granted.await.map_err(io::Error::other)?.map_err(io::Error::other)?;
                }
            }
            Ok(())
        }
    })
}

/// A session with many clients ends, and leaves an heir to each, again and again.
fn end_all(url: String, clients: usize, over: Arc<AtomicBool>) -> io::Result<()> {
    each(1, |_| {
        let (url, over) = (url.clone(), over.clone());
        async move {
            let heirs = Locks::connect(url.clone()).await.map_err(io::Error::other)?;
            while !over.load(Ordering::Acquire) {
                let session = Locks::connect(url.clone()).await.map_err(io::Error::other)?;
                let mut held = Vec::new();
                for name in 0..clients {
                    let lock = session.new_client().request(format!("heir {name}")).await;
                    held.push(lock.map_err(io::Error::other)?);
                }
                let waits = |name| {
                    let request = heirs.request(format!("heir {name}")).into_future();
                    tokio::task::spawn_local(async move { request.await.map(drop) })
                };
                let waiting: Vec<_> = (0..clients).map(waits).collect();
                tokio::task::yield_now().await;
                heirs.place().await.map_err(io::Error::other)?;
                session.disconnect().await;
                for granted in waiting {
                    granted.await.map_err(io::Error::other)?.map_err(io::Error::other)?;
                }
            }
            Ok(())
        }
    })
}

fn targets(rows: &[Row]) -> Vec<Target> {
    let ours = rows.iter().filter(|row| row.ours().peer == OURS);
    let limited = ours.filter_map(|row| {
        let limit = match row.case.as_str() {
            resume::CYCLE => RESUME_NANOSECONDS_MAX,
            case if case.starts_with("resume-") => return None,
            _ => CYCLE_NANOSECONDS_MAX,
        };
        Some((row, limit))
    });
    limited
        .map(|(row, limit)| Target {
            text: format!("nanoseconds of the slowest cycle beside {}", row.case),
            measured: row.ours().median(),
            limit,
        })
        .collect()
}
