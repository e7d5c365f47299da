//! A holder that hangs: time out, find its name, steal the lock, and let the store refuse later
//! writes of the old holder.
//!
//! ```sh
//! cargo run -p navlocks --example timeout_and_steal
//! ```

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use navlocks::blocking::block_on;
use navlocks::{FencingToken, Locks};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// A store with a fence: it remembers the newest token and refuses older ones. This makes stealing
/// safe, because a hanging process cannot be stopped at the right moment.
#[derive(Default)]
struct Store {
    newest: Option<FencingToken>,
    report: String,
}

/// The writer's lock is not the newest any more.
#[derive(Debug)]
struct Outdated {
    token: FencingToken,
    newest: FencingToken,
}

impl fmt::Display for Outdated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused: token {} is older than {}", self.token, self.newest)
    }
}

impl Store {
    fn write(&mut self, token: FencingToken, report: &str) -> Result<(), Outdated> {
        if let Some(newest) = self.newest.filter(|newest| token < *newest) {
            return Err(Outdated { token, newest });
        }
        self.newest = Some(token);
        report.clone_into(&mut self.report);
        Ok(())
    }
}

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    block_on(async {
        let locks = Locks::new();
        let (worker, operator) = (locks.new_client(), locks.new_client());
        let mut store = Store::default();

        let stuck = worker.request("report").tag("the nightly worker").await?;
        writeln!(out, "worker: holds the lock, and hangs")?;

        let patient = operator.request("report").timeout(Duration::from_millis(50)).await;
        let Err(error) = patient else { return Err("the lock was free".into()) };
        writeln!(out, "operator: {}", error.kind())?;
        for info in error.holders() {
            let who = info.tag.as_deref().unwrap_or("a client without a tag");
            writeln!(out, "operator: {} is held by {who}", info.scope)?;
        }

        let lock = operator.request("report").steal().tag("the operator").await?;
        writeln!(out, "operator: took it away")?;
        if store.write(lock.fencing_token(), "written by the operator").is_ok() {
            writeln!(out, "operator: wrote the report")?;
        }

        // The worker continues without knowing. The store refuses it.
        if let Err(error) = store.write(stuck.fencing_token(), "written too late") {
            writeln!(out, "worker: {error}")?;
        }
        // If it had checked first, it would have known.
        if let Some(loss) = stuck.loss() {
            writeln!(out, "worker: {loss}")?;
        }
        writeln!(out, "the report: {}", store.report)?;
        Ok(())
    })
}
