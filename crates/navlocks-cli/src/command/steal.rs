//! `navlocks steal`.

use std::ffi::OsString;
use std::future::IntoFuture;

use clap::Args;
use navlocks::events::Kind as What;
use navlocks::{ClientId, Locks, Loss, Name, Snapshot};

use super::target::Target;
use super::{names, recovery};
use crate::exit::{Exit, Failure};
use crate::printer::{self, Harmless};

/// Take a lock away from whoever holds it
///
/// For a holder that hangs: it is told that its lock was stolen, a command that runs under it is ended, and whoever waits
/// first has the lock. To run a command in the holder's place: navlocks run --steal NAME -- COMMAND.
#[derive(Debug, Args)]
pub(super) struct Steal {
    /// The name
    #[arg(value_name = "NAME")]
    name: Vec<OsString>,
    #[command(flatten)]
    target: Target,
}

impl Steal {
    pub(super) async fn perform(self) -> Result<(), Failure> {
        let name = single(&self.name)?;
        let Some(locks) = self.target.connect_if_used().await? else {
            return Err(nobody(&name));
        };
        let waited_for = self.target.answer(locks.recovery()).await?;
        if holders(&self.target, &locks, &name).await?.held.is_empty() && waited_for.is_empty() {
            return Err(nobody(&name));
        }
        let mut events = locks.events();
        let thief = locks.request(&name).steal().tag("navlocks steal").into_future();
        let thief = tokio::time::timeout(self.target.patience, thief).await;
        let thief = thief
            .map_err(|_| self.target.silent(self.target.patience))?
            .map_err(|error| Failure::new(Exit::Withdrawn, error.to_string()))?;
        let by = thief.request_id();
        // When this is answered, all that the theft did has been told.
        self.target.query(&locks).await?;
        let mut text = String::new();
        while let Some(received) = events.try_recv() {
            if let Ok(event) = received
                && event.what == What::Lost(Loss::Stolen { by })
            {
                text.push_str(&taken(&name, event.client, event.tag.as_deref(), event.pid));
            }
        }
        drop(events);
        let now = self.target.answer(locks.recovery()).await?;
        text.push_str(&recovery::taken(&name, &waited_for, &now));
        let released = thief.release();
        Target::finish(locks).await;
        released.map_err(|loss| Failure::new(Exit::Withdrawn, loss.to_string()))?;
        // It may have been released just before.
        if text.is_empty() { Err(nobody(&name)) } else { printer::print(&text) }
    }
}

/// The one name of an argument list that takes one.
pub(super) fn single(arguments: &[OsString]) -> Result<Name, Failure> {
    match arguments {
        [] => Err(Failure::new(Exit::NoName, "no name was given: say which lock")),
        [argument] => names::existing(argument),
        [_, second, ..] => {
            let second = second.display();
            Err(Failure::new(Exit::Usage, format!("'{second}' is one argument too many")))
        }
    }
}

/// The held locks that have the name in their scope.
pub(super) async fn holders(
    target: &Target,
    locks: &Locks,
    name: &Name,
) -> Result<Snapshot, Failure> {
    let mut snapshot = target.query(locks).await?;
    snapshot.held.retain(|info| info.scope.contains(name));
    Ok(snapshot)
}

pub(super) fn nobody(name: &Name) -> Failure {
    Failure::new(Exit::Conflict, format!("nobody holds '{name}'"))
}

/// Says from whom the lock was taken.
pub(super) fn taken(name: &Name, client: ClientId, tag: Option<&str>, pid: Option<u32>) -> String {
    let tag = tag.map(|tag| format!(" {}", Harmless(tag))).unwrap_or_default();
    let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    format!("took '{name}' from client {client}{tag}{pid}\n")
}
