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
            let all = match &locks {
                Some(locks) => self.target.query_all(locks).await?,
                None => Vec::new(),
            };
            Target::finish_all(locks).await;
            return self.print_all(&all);
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
        if is_empty(&snapshot) {
            return printer::print(NOTHING);
        }
        let mut lines = table::lines(&snapshot, Palette::of_stdout());
        lines.extend(reason);
        printer::print(&(lines.join("\n") + "\n"))
    }

    fn print_all(&self, all: &[PartitionSnapshot]) -> Result<(), Failure> {
        if self.json {
            return printer::print(&json::partitions(all));
        }
        let palette = Palette::of_stdout();
        let used = all.iter().filter(|partition| !is_empty(&partition.snapshot));
        let tables = used.map(|partition| {
            let mut lines = vec![palette.bold(&table::title(partition))];
            lines.extend(table::lines(&partition.snapshot, palette));
            lines.join("\n") + "\n"
        });
        let text = tables.collect::<Vec<_>>().join("\n");
        printer::print(if text.is_empty() { NOTHING } else { &text })
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
