//! `navlocks query`.

use clap::Args;
use navlocks::Snapshot;

use super::target::Target;
use super::{json, table};
use crate::exit::Failure;
use crate::printer::{self, Palette};

/// Show who holds what, and who waits
///
/// Held locks come in the order in which they were granted, waiting requests as they stand in the queue. Where no service
/// runs nobody holds anything, and none is started.
#[derive(Debug, Args)]
pub(super) struct Query {
    /// Print one JSON object with the arrays held and pending
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

impl Query {
    pub(super) async fn perform(self) -> Result<(), Failure> {
        let snapshot = match self.target.connect_if_running().await? {
            Some(locks) => locks.query().await.map_err(super::target::unanswered)?,
            None => Snapshot::default(),
        };
        if self.json {
            return printer::print(&json::snapshot(&snapshot));
        }
        if snapshot.held.is_empty() && snapshot.pending.is_empty() {
            return printer::print("nothing is held\n");
        }
        printer::print(&(table::lines(&snapshot, Palette::of_stdout()).join("\n") + "\n"))
    }
}
