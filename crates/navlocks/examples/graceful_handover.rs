//! A polite holder: it keeps a lock as long as no other client wants it, because locking again is
//! expensive, and releases it when a request waits. No client has to steal, or to guess a lease.
//!
//! ```sh
//! cargo run -p navlocks --example graceful_handover
//! ```

use std::error::Error;
use std::io::{self, Write};
use std::sync::mpsc::{self, Sender};
use std::thread;

use navlocks::blocking::block_on;
use navlocks::{Locks, RequestError};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

type News = Sender<&'static str>;

fn index(locks: &Locks, news: &News) -> Result<(), String> {
    let open =
        || locks.request("index").tag("the indexer").lock_blocking().map_err(|e| e.to_string());
    let lock = open()?;
    news.send("indexer: opened the index and keeps it open").ok();
    // While it works it can call `lock.is_contended().await` after each page; idle, it sleeps here.
    match block_on(lock.contended()) {
        Ok(()) => {
            news.send("indexer: a request waits, so it closes the index").ok();
            drop(lock);
        }
        Err(loss) => return Err(loss.to_string()),
    }
    // The holder queues again, behind the backup.
    let _lock = open()?;
    news.send("indexer: opened the index again").ok();
    Ok(())
}

fn back_up(locks: &Locks, news: &News) -> Result<(), RequestError> {
    let _lock = locks.request("index").tag("the backup").lock_blocking()?;
    news.send("backup: copies the closed index").ok();
    Ok(())
}

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let locks = Locks::new();
    let (news, told) = mpsc::channel();
    thread::scope(|scope| {
        let indexer = {
            let (locks, news) = (locks.new_client(), news.clone());
            scope.spawn(move || index(&locks, &news))
        };
        // The index is open; now the backup runs.
        writeln!(out, "{}", told.recv()?)?;
        let backup = scope.spawn(move || back_up(&locks, &news));
        for line in told {
            writeln!(out, "{line}")?;
        }
        indexer.join().map_err(|_| "the indexer crashed")??;
        backup.join().map_err(|_| "the backup crashed")??;
        Ok(())
    })
}
