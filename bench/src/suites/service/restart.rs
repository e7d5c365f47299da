//! The case of a server that is killed and started again. Every wait is bounded.

use std::future::Future;
use std::io;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use super::case::{Endpoint, Named, connect, hold, leave};
use super::client::{Client, Service};

/// For one attempt to connect and to get a lock: a server that is just starting may not answer.
const ATTEMPT_MAX: Duration = Duration::from_secs(10);
/// For all attempts, and for every other step.
const STEP_MAX: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(1);

/// Returns how long it took until a new client had a new lock, and how many held locks were lost.
pub(super) async fn restart<S: Service>(
    service: S,
    place: &Endpoint,
    clients: usize,
) -> io::Result<(Duration, usize)> {
    let address = || place.address.clone();
    let holders = async { hold(connect(service, address(), clients).await?).await };
    let holders = bounded("locks before the restart", holders).await?;
    let begin = Instant::now();
    place.server.kill_and_start()?;
    let first = first_grant(service, place, begin).await?;
    let time = begin.elapsed();
    let probes = bounded("new clients", connect(service, address(), clients)).await?;
    let mut asked = Vec::with_capacity(clients);
    for (holder, mut probe) in holders.into_iter().zip(probes) {
        probe.name.clone_from(&holder.name);
        asked.push(tokio::spawn(is_lost(holder, probe, place.extent.probe)));
    }
    let mut lost = 0;
    for asked in asked {
        lost += usize::from(asked.await?);
    }
    bounded("the end of the new client", leave(first)).await?;
    Ok((time, lost))
}

/// Returns a client with a lock. The server refuses connections until it listens, and some a while
/// longer.
async fn first_grant<S: Service>(
    service: S,
    place: &Endpoint,
    begin: Instant,
) -> io::Result<Vec<Named<S::Client>>> {
    loop {
        let attempt = async { hold(connect(service, place.address.clone(), 1).await?).await };
        let problem = match timeout(ATTEMPT_MAX, attempt).await {
            Ok(Ok(held)) => return Ok(held),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {ATTEMPT_MAX:?}"),
        };
        if place.server.has_ended() || begin.elapsed() > STEP_MAX {
            let last = place.server.last_words();
            return Err(io::Error::other(format!("no lock after the restart: {problem}: {last}")));
        }
        sleep(PAUSE).await;
    }
}

/// Returns true if another client gets the lock in this time, or the holder does not have it any
/// more.
async fn is_lost<C: Client>(mut holder: Named<C>, mut probe: Named<C>, time: Duration) -> bool {
    let granted = timeout(time, probe.client.acquire(&probe.name)).await;
    let kept = timeout(STEP_MAX, holder.client.keeps()).await;
    matches!(granted, Ok(Ok(()))) || !matches!(kept, Ok(Ok(true)))
}

/// A step of the case, which fails when it takes too long.
async fn bounded<T>(step: &str, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let late = |_| io::Error::other(format!("{step} took more than {STEP_MAX:?}"));
    timeout(STEP_MAX, work).await.map_err(late)?
}
