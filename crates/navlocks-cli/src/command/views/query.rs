//! `navlocks query`.

use std::collections::BTreeSet;

use clap::Args;
use navlocks::{PartitionSnapshot, Snapshot, UnclaimedSession};

use super::{json, table};
use crate::command::services::recovery;
use crate::command::target::Target;
use crate::exit::Failure;
use crate::printer::{self, Palette};

const NOTHING: &str = "nothing is held\n";

/// Show held locks and waiting requests
///
/// Held locks come in the order of their grants, waiting requests in the order of the queue. Where
/// no service runs no lock is held, and none is started, unless clients of an earlier one are left.
#[derive(Debug, Args)]
pub(crate) struct Query {
    /// Print one JSON object with the arrays held and pending; after a restart also unclaimed, the
    /// sessions that the service waits for
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
    pub(crate) async fn perform(self) -> Result<(), Failure> {
        let locks = self.target.connect_if_used().await?;
        if self.all_partitions {
            let (all, reason, unclaimed) = match &locks {
                Some(locks) => {
                    let (all, reason) = self.target.query_all(locks).await?;
                    (all, reason, self.target.answer(locks.unclaimed_sessions()).await?)
                }
                None => (Vec::new(), None, Vec::new()),
            };
            Target::finish_all(locks).await;
            if self.json {
                return printer::print(&json::partitions(&all, reason.as_deref(), &unclaimed));
            }
            return print_all(&all, notes(reason, &unclaimed));
        }
        let (snapshot, reason, unclaimed) = match &locks {
            Some(locks) => {
                let (snapshot, reason) = self.target.query_with_reason(locks).await?;
                (snapshot, reason, self.target.answer(locks.unclaimed_sessions()).await?)
            }
            None => (Snapshot::default(), None, Vec::new()),
        };
        Target::finish_all(locks).await;
        if self.names {
            // The names of these sessions are not known, so their lines would be missing silently.
            notes(reason, &unclaimed).iter().for_each(|note| printer::tell(note.trim_end()));
            return printer::print(&names(&snapshot));
        }
        if self.json {
            return printer::print(&json::snapshot(&snapshot, reason.as_deref(), &unclaimed));
        }
        let mut text = String::new();
        if !is_empty(&snapshot) {
            text = table::lines(&snapshot, Palette::of_stdout()).join("\n") + "\n";
        }
        text.extend(notes(reason, &unclaimed));
        printer::print(if text.is_empty() { NOTHING } else { &text })
    }
}

/// Returns a line for each cause that keeps locks from being granted.
fn notes(reason: Option<String>, unclaimed: &[UnclaimedSession]) -> Vec<String> {
    let reason = reason.filter(|_| unclaimed.is_empty());
    let unclaimed = unclaimed.iter().map(recovery::sentence);
    reason.into_iter().chain(unclaimed).map(|line| line + "\n").collect()
}

fn print_all(all: &[PartitionSnapshot], notes: Vec<String>) -> Result<(), Failure> {
    let palette = Palette::of_stdout();
    let used = all.iter().filter(|partition| !is_empty(&partition.snapshot));
    let tables = used.map(|partition| {
        let mut lines = vec![palette.bold(&table::title(partition))];
        lines.extend(table::lines(&partition.snapshot, palette));
        lines.join("\n") + "\n"
    });
    let mut text = tables.collect::<Vec<_>>().join("\n");
    text.extend(notes);
    printer::print(if text.is_empty() { NOTHING } else { &text })
}

/// Returns a line for each held name, sorted.
fn names(snapshot: &Snapshot) -> String {
    let held = snapshot.held.iter().flat_map(|info| info.scope.names());
    let is_line = |name: &&str| !name.is_empty() && !name.contains(char::is_control);
    let lines: BTreeSet<&str> = held.filter_map(|name| name.to_str()).filter(is_line).collect();
    lines.into_iter().flat_map(|line| [line, "\n"]).collect()
}

fn is_empty(snapshot: &Snapshot) -> bool {
    snapshot.held.is_empty() && snapshot.pending.is_empty()
}
