//! `navlocks steal`.

use std::ffi::OsString;
use std::future::IntoFuture;

use clap::Args;
use navlocks::EventKind;
use navlocks::{ClientId, Locks, LossCause, Name, Snapshot};

use crate::command::services::recovery;
use crate::command::target::Target;
use crate::command::{names, short};
use crate::exit::{Exit, Failure};
use crate::printer::{self, Harmless};

/// Steal a lock from its holder
///
/// For a holder that hangs: it receives the loss, a command under the lock is ended, and the first
/// waiter has the lock. To run a command in the holder's place: navlocks run --steal NAME --
/// COMMAND.
#[derive(Debug, Args)]
pub(crate) struct Steal {
    /// The name
    #[arg(value_name = "NAME")]
    name: Vec<OsString>,
    #[command(flatten)]
    target: Target,
}

impl Steal {
    pub(crate) async fn perform(self) -> Result<(), Failure> {
        let name = single(&self.name)?;
        let Some(locks) = self.target.connect_if_used().await? else {
            return Err(not_held(&name));
        };
        let waited_for = self.target.answer(locks.unclaimed_sessions()).await?;
        if holders(&self.target, &locks, &name).await?.held.is_empty() && waited_for.is_empty() {
            return Err(not_held(&name));
        }
        let mut events = locks.events();
        let thief = locks.request(&name).steal().tag("navlocks steal").into_future();
        let thief = tokio::time::timeout(self.target.answer_timeout, thief).await;
        let thief = thief
            .map_err(|_| self.target.silent(self.target.answer_timeout))?
            .map_err(|error| Failure::new(Exit::Withdrawn, error.to_string()))?;
        let by = thief.request_id();
        // The answer comes after all effects of the theft.
        self.target.query(&locks).await?;
        let mut text = String::new();
        while let Some(received) = events.try_recv() {
            if let Ok(event) = received
                && event.kind == EventKind::Lost(LossCause::Stolen { by: by.into() })
            {
                text.push_str(&taken(&name, event.client, event.tag.as_deref(), event.pid));
            }
        }
        drop(events);
        let now = self.target.answer(locks.unclaimed_sessions()).await?;
        text.push_str(&recovery::taken(&name, &waited_for, &now));
        let released = thief.release();
        Target::finish(locks).await;
        released.map_err(|loss| Failure::new(Exit::Withdrawn, loss.to_string()))?;
        // The holder may have released it just before.
        if text.is_empty() { Err(not_held(&name)) } else { printer::print(&text) }
    }
}

/// Returns the name of an argument list that takes one.
pub(crate) fn single(arguments: &[OsString]) -> Result<Name, Failure> {
    match arguments {
        [] => Err(Failure::new(Exit::NoName, "no name was given: say which lock")),
        [argument] => names::existing(argument),
        [_, second, ..] => {
            let second = short(&second.display());
            Err(Failure::new(Exit::Usage, format!("'{second}' is one argument too many")))
        }
    }
}

/// Returns the held locks with the name in their scope.
pub(crate) async fn holders(
    target: &Target,
    locks: &Locks,
    name: &Name,
) -> Result<Snapshot, Failure> {
    let mut snapshot = target.query(locks).await?;
    snapshot.held.retain(|info| info.scope.contains(name));
    Ok(snapshot)
}

pub(crate) fn not_held(name: &Name) -> Failure {
    Failure::new(Exit::Conflict, format!("'{}' is not held", short(name)))
}

/// Returns a line about a client that lost its lock.
pub(crate) fn taken(name: &Name, client: ClientId, tag: Option<&str>, pid: Option<u32>) -> String {
    let tag = tag.map(|tag| format!(" {}", Harmless(tag))).unwrap_or_default();
    let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    format!("took '{}' from client {client}{tag}{pid}\n", short(name))
}
