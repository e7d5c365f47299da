//! Fail-overs: from the end of an owner with many held locks to the first new grant.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks::{Lock, Locks};

use super::ground::Ground;
use crate::harness::Unit::{Count, Nanoseconds};
use crate::harness::{Contest, Options};
use crate::suites::OURS;

/// How many locks are held, by how many clients.
const HELD: usize = 1000;
const HOLDERS: usize = 10;
/// Each takes seconds.
const ROUNDS: usize = 3;
const GRANT_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Copy)]
enum End {
    /// By a signal that it cannot catch.
    Kill,
    /// In good order: the owner gives its slots away.
    Leave,
}

/// The two ways in which an owner ends, and the locks that are lost.
pub(super) fn contests(ground: &Rc<Ground>, options: &Options) -> Vec<Contest> {
    let held = if options.quick { HELD / 10 } else { HELD };
    let cases = [("kill", End::Kill), ("leave", End::Leave)];
    let both = cases.map(|(word, end)| {
        let lost = Rc::new(Cell::new(0));
        let (counted, ground) = (Rc::clone(&lost), Rc::clone(ground));
        let time = Contest::new(&[&format!("{word}-first-grant")], Nanoseconds)
            .rounds_max(ROUNDS)
            .side(OURS, move || {
                Box::new(move || {
                    let ended = fail_over(&ground, end, held);
                    let (time, lost) = ended.unwrap_or_else(|problem| panic!("{problem}"));
                    counted.set(counted.get() + lost);
                    vec![time.as_nanos() as f64]
                })
            });
        let count = Contest::new(&[&format!("{word}-locks-lost")], Count)
            .side(OURS, move || Box::new(move || vec![lost.get() as f64]));
        [time, count]
    });
    both.into_iter().flatten().collect()
}

/// Ends the owner. Returns the time to the first new grant, and how many locks were lost.
fn fail_over(ground: &Ground, end: End, held: usize) -> Result<(Duration, usize), String> {
    let url = ground.url();
    let run = |work: io::Result<_>| work.map_err(|error: io::Error| error.to_string());
    let (clients, locks, late) = run(ground.runtime.block_on(hold(&url, held)))?;
    let owner = ground.owner()?;
    let start = Instant::now();
    match end {
        End::Kill => ground.nodes.borrow_mut().kill(owner),
        // The clients answer meanwhile: they run on this thread.
        End::Leave => ground.nodes.borrow().end(owner),
    }
    let granted = ground.runtime.block_on(async {
        let grant = late.request("new").timeout(GRANT_MAX).await;
        grant.map(drop).map_err(|error| error.to_string())
    });
    let time = start.elapsed();
    granted?;
    let lost = locks.iter().filter(|lock| lock.loss().is_some()).count();
    ground.runtime.block_on(async {
        drop(locks);
        for client in clients.into_iter().chain([late]) {
            client.disconnect().await;
        }
    });
    ground.nodes.borrow_mut().restart(owner)?;
    ground.await_balance()?;
    Ok((time, lost))
}

/// Clients that hold so many locks, and one that holds none.
async fn hold(url: &str, held: usize) -> io::Result<(Vec<Locks>, Vec<Lock>, Locks)> {
    let connect = async || {
        let connect = Locks::connect(url).unreachable_after(None);
        connect.await.map_err(io::Error::other)
    };
    let (mut clients, mut locks) = (Vec::new(), Vec::new());
    for holder in 0..HOLDERS {
        let client = connect().await?;
        for number in 0..held / HOLDERS {
            let name = format!("held{holder}-{number}");
            locks.push(client.request(name).await.map_err(io::Error::other)?);
        }
        clients.push(client);
    }
    Ok((clients, locks, connect().await?))
}
