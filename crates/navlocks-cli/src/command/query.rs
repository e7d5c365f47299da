//! `navlocks query`.

use std::collections::BTreeSet;

use clap::Args;
use navlocks::{PartitionSnapshot, Snapshot};

use super::target::Target;
use super::{json, table};
use crate::exit::Failure;
use crate::printer::{self, Palette};

const NOTHING: &str = "nothing is held\n";

/// Show who holds what, and who waits
///
/// Held locks come in the order in which they were granted, waiting requests as they stand in the queue. Where no service
/// runs nobody holds anything, and none is started.
#[derive(Debug, Args)]
pub(super) struct Query {
    /// Print one JSON object with the arrays held and pending, and the reason if nothing is granted
    /// yet after a crash
    #[arg(long)]
    json: bool,
    /// Print the names of held locks, one on a line, without those that have control characters
    #[arg(long, conflicts_with_all = ["json", "all_partitions"])]
    names: bool,
    /// Show all partitions of the service, not only one
    #[arg(long, conflicts_with = "partition")]
    all_partitions: bool,
    #[command(flatten)]
    target: Target,
}

impl Query {
    pub(super) async fn perform(self) -> Result<(), Failure> {
        let locks = self.target.connect_if_running().await?;
        if self.all_partitions {
            let (all, reason) = match &locks {
                Some(locks) => self.target.query_all(locks).await?,
                None => (Vec::new(), None),
            };
            Target::finish_all(locks).await;
            return self.print_all(&all, reason.as_deref());
        }
        let (snapshot, reason) = match &locks {
            Some(locks) => self.target.query_with_reason(locks).await?,
            None => (Snapshot::default(), None),
        };
        Target::finish_all(locks).await;
        if self.names {
            return printer::print(&names(&snapshot));
        }
        if self.json {
            return printer::print(&json::snapshot(&snapshot, reason.as_deref()));
        }
        let mut text = match is_empty(&snapshot) {
            true => NOTHING.to_owned(),
            false => table::lines(&snapshot, Palette::of_stdout()).join("\n") + "\n",
        };
        text.extend(reason.map(|reason| reason + "\n"));
        printer::print(&text)
    }

    fn print_all(&self, all: &[PartitionSnapshot], reason: Option<&str>) -> Result<(), Failure> {
        if self.json {
            return printer::print(&json::partitions(all, reason));
        }
        let palette = Palette::of_stdout();
        let used = all.iter().filter(|partition| !is_empty(&partition.snapshot));
        let tables = used.map(|partition| {
            let mut lines = vec![palette.bold(&table::title(partition))];
            lines.extend(table::lines(&partition.snapshot, palette));
            lines.join("\n") + "\n"
        });
        let mut text = tables.collect::<Vec<_>>().join("\n");
        if text.is_empty() {
            text.push_str(NOTHING);
        }
        text.extend(reason.map(|reason| format!("{reason}\n")));
        printer::print(&text)
    }
}

/// Returns a line for each name that is held, once, in their order.
fn names(snapshot: &Snapshot) -> String {
    let held = snapshot.held.iter().flat_map(|info| info.scope.names());
    let is_line = |name: &&str| !name.is_empty() && !name.contains(char::is_control);
    let lines: BTreeSet<&str> = held.filter_map(|name| name.to_str()).filter(is_line).collect();
    lines.into_iter().flat_map(|line| [line, "\n"]).collect()
}

fn is_empty(snapshot: &Snapshot) -> bool {
    snapshot.held.is_empty() && snapshot.pending.is_empty()
}
