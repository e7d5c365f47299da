//! `navlocks cluster`.

use clap::{Args, Subcommand};

use super::etcd::EtcdOptions;
use crate::exit::Failure;

/// Show the nodes and slots of a cluster, or move the slots of a node away
///
/// A cluster is several `navlocks serve --cluster` on one etcd. Each node owns some of the slots,
/// and keeps their locks in its memory; etcd knows which node owns which slot, and which sessions
/// exist.
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show every slot
    #[arg(long, conflicts_with = "json")]
    slots: bool,
    #[command(flatten)]
    etcd: EtcdOptions,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Let a node give all its slots to others, without losing a lock, before it is stopped
    Drain {
        /// The name of the node
        node: String,
    },
    /// Tell all nodes that etcd was restored from a backup
    ///
    /// Sessions may be missing then, so all clients lose their locks, and no lock is granted before
    /// the longest lease has passed. Nodes that run notice a restore by themselves. If none ran,
    /// use this before the first one starts.
    Restored,
    /// Let a node that was drained own slots again
    Undrain {
        /// The name of the node
        node: String,
    },
}

impl Cluster {
    #[cfg(not(feature = "etcd"))]
    pub(crate) async fn perform(self) -> Result<(), Failure> {
        let Self { action: _, json: _, slots: _, etcd: _ } = self;
        Err(super::etcd::missing())
    }

    #[cfg(feature = "etcd")]
    pub(crate) async fn perform(self) -> Result<(), Failure> {
        use super::etcd::failure;
        use crate::printer;

        let (address, tls) = self.etcd.address()?;
        let failed = |error: navlocks_etcd::Error| failure(&error);
        let inspection = navlocks_etcd::Inspection::new(&address, &tls).map_err(failed)?;
        match self.action {
            Some(Action::Drain { node }) => shown::drain(&inspection, &node).await,
            Some(Action::Restored) => {
                inspection.note_restored().await.map_err(failed)?;
                let text = "the nodes grant no lock before the longest lease has passed\n";
                printer::print(text)
            }
            Some(Action::Undrain { node }) => {
                inspection.drain(&node, false).await.map_err(failed)?;
                printer::print(&format!("{} owns slots again\n", printer::Harmless(&node)))
            }
            None => {
                let view = inspection.look().await.map_err(failed)?;
                let text = match self.json {
                    true => shown::json(&view),
                    false => shown::table(&view, self.slots, printer::Palette::of_stdout()),
                };
                printer::print(&text)
            }
        }
    }
}

/// How a cluster is shown.
#[cfg(feature = "etcd")]
mod shown {
    use std::fmt::Write as _;
    use std::time::{Duration, Instant};

    use navlocks_etcd::{ClusterView, Inspection, SlotView};
    use serde::Serialize;
    use tokio::time::sleep;

    use crate::command::services::etcd::failure;
    use crate::exit::{Exit, Failure};
    use crate::printer::{self, Harmless, Palette};

    /// Between two looks at a node that is drained, and the longest time for it.
    const LOOK: Duration = Duration::from_millis(50);
    const DRAIN_MAX: Duration = Duration::from_secs(60);

    #[derive(Serialize)]
    struct Shown<'a> {
        nodes: Vec<Node<'a>>,
        slots: Vec<Slot<'a>>,
    }

    #[derive(Serialize)]
    struct Node<'a> {
        name: &'a str,
        address: &'a str,
        slots: usize,
        draining: bool,
    }

    #[derive(Serialize)]
    struct Slot<'a> {
        slot: usize,
        owner: Option<&'a str>,
        epoch: Option<u64>,
        sessions: usize,
        recovering: bool,
    }

    pub(super) fn json(view: &ClusterView) -> String {
        let slot = |(slot, it): (usize, &'_ SlotView)| Slot {
            slot,
            owner: view.slots[slot].address.as_deref(),
            epoch: it.epoch.map(|epoch| epoch.0),
            sessions: it.sessions,
            recovering: it.is_rebuilt,
        };
        let nodes = view.nodes.iter().map(|it| Node {
            name: &it.name,
            address: &it.address,
            slots: it.slots,
            draining: it.is_draining,
        });
        let nodes = nodes.collect();
        let shown = Shown { nodes, slots: view.slots.iter().enumerate().map(slot).collect() };
        navlocks_wire::write(&shown) + "\n"
    }

    pub(super) fn table(view: &ClusterView, all: bool, palette: Palette) -> String {
        let mut rows = vec![["NODE", "ADDRESS", "SLOTS", "SESSIONS", "STATE"].map(str::to_owned)];
        for node in &view.nodes {
            let own = || view.slots.iter().filter(|it| it.address.as_ref() == Some(&node.address));
            let recovering = own().filter(|slot| slot.is_rebuilt).count();
            let state = match (node.is_draining, recovering) {
                (true, _) => "drains".to_owned(),
                (false, 0) => "serves".to_owned(),
                (false, count) => format!("recovers {count} slots"),
            };
            rows.push([
                Harmless(&node.name).to_string(),
                Harmless(&node.address).to_string(),
                node.slots.to_string(),
                own().map(|slot| slot.sessions).sum::<usize>().to_string(),
                state,
            ]);
        }
        let mut text = lines(&rows, palette);
        let free = view.slots.iter().filter(|slot| slot.address.is_none()).count();
        if free > 0 {
            let _ = writeln!(text, "{free} of {} slots have no owner", view.slots.len());
        }
        if all {
            let mut rows = vec![["SLOT", "OWNER", "EPOCH", "SESSIONS", "STATE"].map(str::to_owned)];
            for (number, slot) in view.slots.iter().enumerate() {
                rows.push([
                    number.to_string(),
                    Harmless(slot.address.as_deref().unwrap_or("none")).to_string(),
                    slot.epoch.map(|epoch| epoch.0.to_string()).unwrap_or_default(),
                    slot.sessions.to_string(),
                    if slot.is_rebuilt { "recovers" } else { "" }.to_owned(),
                ]);
            }
            text.push('\n');
            text.push_str(&lines(&rows, palette));
        }
        text
    }

    fn lines(rows: &[[String; 5]], palette: Palette) -> String {
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths: [usize; 5] = std::array::from_fn(|column| width(column).unwrap_or(0));
        let mut text = String::new();
        for (index, row) in rows.iter().enumerate() {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
            let line = cells.collect::<Vec<_>>().join("  ").trim_end().to_owned();
            let line = if index == 0 { palette.bold(&line) } else { line };
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Asks a node to give its slots away, and waits until it has none.
    pub(super) async fn drain(inspection: &Inspection, node: &str) -> Result<(), Failure> {
        let failed = |error: navlocks_etcd::Error| failure(&error);
        inspection.drain(node, true).await.map_err(failed)?;
        let began = Instant::now();
        loop {
            let view = inspection.look().await.map_err(failed)?;
            let left: usize =
                view.nodes.iter().filter(|it| it.name == node).map(|it| it.slots).sum();
            if left == 0 {
                let text = format!("{} has no slots any more: it can be stopped\n", Harmless(node));
                return printer::print(&text);
            }
            if view.nodes.iter().all(|it| it.name == node || it.is_draining) {
                let text = format!(
                    "{} keeps its {left} slots until there is a node that can take them",
                    Harmless(node)
                );
                return Err(Failure::new(Exit::Conflict, text));
            }
            if began.elapsed() > DRAIN_MAX {
                let text = format!("{} still has {left} slots", Harmless(node));
                return Err(Failure::new(Exit::Silent, text));
            }
            sleep(LOOK).await;
        }
    }
}
