//! The cases: each connects clients to a server and returns the work of one round.
//!
//! All clients run on one runtime of one thread: the servers have the other core.

use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::client::{Client, Service};
use super::restart::restart;
use crate::harness::Round;
use crate::stats;
use servers::{Address, Program, Server, Transport};

/// A round takes seconds; a peer that hangs must not hang the run.
const ROUND_MAX: Duration = Duration::from_secs(120);

/// How many clients connect at the same time: no more than fit into the backlog of any server.
const CONNECTING_MAX: usize = 64;

/// The place and the duration of a case.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    /// How long clients work in a round.
    pub(crate) time: Duration,
    /// How many hand-overs there are in a round at most, and how long they may take together.
    pub(crate) hand_overs: usize,
    pub(crate) hand_over_time: Duration,
    /// How long clients are idle before memory is read.
    pub(crate) settle: Duration,
    /// How long other clients try to get locks that are held.
    pub(crate) probe: Duration,
}

/// A server that the clients of a case connect to.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) runtime: Rc<Runtime>,
    pub(crate) server: Rc<Server>,
    pub(crate) address: Address,
    pub(crate) extent: Extent,
}

impl Endpoint {
    pub(crate) fn run<T>(&self, work: impl Future<Output = io::Result<T>>) -> T {
        let bounded = async { tokio::time::timeout(ROUND_MAX, work).await };
        match self.runtime.block_on(bounded) {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => panic!("{}: {error}", self.server.name),
            Err(_) => panic!("{} took more than {ROUND_MAX:?}", self.server.name),
        }
    }
}

/// The cases, for a service whose type is not known.
pub(crate) trait Cases {
    /// Acquire and release by this many clients, each with its own name.
    fn cycle(&self, place: Endpoint, clients: usize) -> Round;
    /// From the release by one client to the grant of the other: the median and the 99th
    /// percentile.
    fn hand_over(&self, place: Endpoint) -> Round;
    /// As `cycle`, while other clients are connected and each hold a lock.
    fn crowd(&self, place: Endpoint, idle: usize, clients: usize) -> Round;
    /// Bytes for each idle client, and for each holder.
    fn memory(
        &self,
        runtime: Rc<Runtime>,
        program: Program,
        extent: Extent,
        clients: usize,
    ) -> Round;
    /// The server is killed while so many clients hold a lock each, and started again: the time
    /// from the kill to the first new lock, and how many of the held locks are lost.
    fn restart(&self, place: Endpoint, clients: usize) -> Round;
}

impl<S: Service> Cases for S {
    fn cycle(&self, place: Endpoint, clients: usize) -> Round {
        let service = *self;
        let mut clients = place.run(connect(service, place.address.clone(), clients));
        Box::new(move || {
            let time = place.extent.time;
            let (working, cost) = place.run(work(std::mem::take(&mut clients), time));
            clients = working;
            vec![cost]
        })
    }

    fn hand_over(&self, place: Endpoint) -> Round {
        let service = *self;
        let clients = place.run(connect(service, place.address.clone(), 2));
        let Ok(clients): Result<[Named<S::Client>; 2], _> = clients.try_into() else {
            unreachable!("two were asked for")
        };
        let mut both = Some(clients);
        Box::new(move || {
            let Some([first, second]) = both.take() else { unreachable!("put back below") };
            let extent = place.extent;
            let (clients, samples) = if S::EXCLUDES {
                place.run(pass_on(first, second, S::HOLD, extent))
            } else {
                place.run(round_trips(first, second, S::HOLD, extent))
            };
            both = Some(clients);
            vec![stats::percentile(&samples, 50), stats::percentile(&samples, 99)]
        })
    }

    fn crowd(&self, place: Endpoint, idle: usize, clients: usize) -> Round {
        let service = *self;
        Box::new(move || {
            let address = &place.address;
            let crowd =
                place.run(async { hold(connect(service, address.clone(), idle).await?).await });
            let clients = place.run(connect(service, address.clone(), clients));
            let (clients, cost) = place.run(work(clients, place.extent.time));
            place.run(leave(clients));
            place.run(leave(crowd));
            vec![cost]
        })
    }

    fn memory(
        &self,
        runtime: Rc<Runtime>,
        program: Program,
        extent: Extent,
        clients: usize,
    ) -> Round {
        let service = *self;
        Box::new(move || {
            // A new server, because servers do not always free their memory.
            let server = (program.start)().unwrap_or_else(|problem| panic!("{problem}"));
            let mut transports = [Transport::Unix, Transport::Tcp].into_iter();
            let address = transports.find_map(|transport| server.address(transport).cloned());
            let Some(address) = address else { unreachable!("every server listens") };
            let (runtime, server) = (Rc::clone(&runtime), Rc::new(server));
            let place = Endpoint { runtime, server, address: address.clone(), extent };
            let bytes = || {
                place.run(async {
                    tokio::time::sleep(extent.settle).await;
                    Ok(place.server.memory_bytes()? as f64)
                })
            };
            // The memory for the first client is not counted.
            let first = place.run(async {
                let first = connect(service, address.clone(), 1).await?;
                work(first, Duration::ZERO).await
            });
            let before = bytes();
            let idle = place.run(connect(service, address.clone(), clients));
            let with_idle = bytes();
            let holders = place.run(hold(idle));
            let with_holders = bytes();
            drop((first, holders));
            let each = |after: f64| (after - before) / clients as f64;
            vec![each(with_idle), each(with_holders)]
        })
    }

    fn restart(&self, place: Endpoint, clients: usize) -> Round {
        let service = *self;
        Box::new(move || {
            let (time, lost) = place.run(restart(service, &place, clients));
            vec![time.as_nanos() as f64, lost as f64]
        })
    }
}

/// A client and the name that it uses.
pub(crate) struct Named<C> {
    pub(crate) client: C,
    pub(crate) name: String,
}

/// Returns an unused name: some peers remember a client that left silently for a while.
fn fresh_name() -> String {
    static NUMBERS: AtomicUsize = AtomicUsize::new(0);
    format!("lock{:08}", NUMBERS.fetch_add(1, Relaxed))
}

/// New clients, each with a name of its own.
pub(crate) async fn connect<S: Service>(
    service: S,
    address: Address,
    count: usize,
) -> io::Result<Vec<Named<S::Client>>> {
    every(vec![(); count], move |()| {
        let address = address.clone();
        async move {
            let client = service.connect(&address).await?;
            Ok(Named { client, name: fresh_name() })
        }
    })
    .await
}

/// Divides a count among concurrent workers.
fn shares(count: usize) -> impl Iterator<Item = usize> {
    (0..CONNECTING_MAX).map(move |position| {
        count / CONNECTING_MAX + usize::from(position < count % CONNECTING_MAX)
    })
}

/// All clients acquire and release, at least once and until the time is over. Returns nanoseconds
/// per cycle of all clients.
async fn work<C: Client>(
    clients: Vec<Named<C>>,
    time: Duration,
) -> io::Result<(Vec<Named<C>>, f64)> {
    let start = Instant::now();
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|mut named| {
            tokio::spawn(async move {
                let mut cycles = 0_usize;
                loop {
                    named.client.acquire(&named.name).await?;
                    named.client.release().await?;
                    cycles += 1;
                    if start.elapsed() >= time {
                        return Ok::<_, io::Error>((named, cycles));
                    }
                }
            })
        })
        .collect();
    let mut clients = Vec::with_capacity(tasks.len());
    let mut total = 0;
    for task in tasks {
        let (client, cycles) = task.await??;
        clients.push(client);
        total += cycles;
    }
    Ok((clients, start.elapsed().as_nanos() as f64 / total as f64))
}

/// Each client takes the lock of its name.
pub(crate) async fn hold<C: Client>(clients: Vec<Named<C>>) -> io::Result<Vec<Named<C>>> {
    every(clients, |mut named| async move {
        named.client.acquire(&named.name).await?;
        Ok(named)
    })
    .await
}

/// Each client goes.
pub(crate) async fn leave<C: Client>(clients: Vec<Named<C>>) -> io::Result<()> {
    every(clients, |named| named.client.close()).await?;
    Ok(())
}

/// Does the same with every item, some at the same time.
async fn every<I, T, F>(
    items: Vec<I>,
    with: impl Fn(I) -> F + Clone + Send + 'static,
) -> io::Result<Vec<T>>
where
    I: Send + 'static,
    T: Send + 'static,
    F: Future<Output = io::Result<T>> + Send,
{
    let count = items.len();
    let mut items = items.into_iter();
    let tasks: Vec<_> = shares(count)
        .map(|share| {
            let (items, with): (Vec<_>, _) = (items.by_ref().take(share).collect(), with.clone());
            tokio::spawn(async move {
                let mut done = Vec::with_capacity(items.len());
                for item in items {
                    done.push(with(item).await?);
                }
                Ok::<_, io::Error>(done)
            })
        })
        .collect();
    let mut done = Vec::with_capacity(count);
    for task in tasks {
        done.extend(task.await??);
    }
    Ok(done)
}

/// Two clients, and the duration of each hand-over in nanoseconds.
type Passed<C> = ([Named<C>; 2], Vec<f64>);

/// The lock goes back and forth. The waiter has waited for a while when the holder releases, and
/// the other requests again only after the grant: so peers without a queue do not overtake.
async fn pass_on<C: Client>(
    mut holder: Named<C>,
    mut waiting: Named<C>,
    hold: Duration,
    extent: Extent,
) -> io::Result<Passed<C>> {
    let name = holder.name.clone();
    let mut samples = Vec::with_capacity(extent.hand_overs);
    holder.client.acquire(&name).await?;
    let start = Instant::now();
    while samples.is_empty()
        || samples.len() < extent.hand_overs && start.elapsed() < extent.hand_over_time
    {
        let its_name = name.clone();
        let turn = tokio::spawn(async move {
            waiting.client.acquire(&its_name).await?;
            Ok::<_, io::Error>((waiting, Instant::now()))
        });
        tokio::time::sleep(hold).await;
        let released = Instant::now();
        holder.client.release().await?;
        let (next, granted) = turn.await??;
        samples.push(granted.duration_since(released).as_nanos() as f64);
        (holder, waiting) = (next, holder);
    }
    holder.client.release().await?;
    Ok(([holder, waiting], samples))
}

/// Returns the floor: a message after the same pause.
async fn round_trips<C: Client>(
    mut one: Named<C>,
    other: Named<C>,
    pause: Duration,
    extent: Extent,
) -> io::Result<Passed<C>> {
    let mut samples = Vec::with_capacity(extent.hand_overs);
    let start = Instant::now();
    while samples.is_empty()
        || samples.len() < extent.hand_overs && start.elapsed() < extent.hand_over_time
    {
        tokio::time::sleep(pause).await;
        let sent = Instant::now();
        one.client.acquire(&one.name).await?;
        samples.push(sent.elapsed().as_nanos() as f64);
    }
    Ok(([one, other], samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_whole() {
        for count in [0, 1, 63, 64, 65, 10_000] {
            assert_eq!(shares(count).sum::<usize>(), count);
        }
    }
}
