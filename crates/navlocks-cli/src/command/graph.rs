//! `navlocks graph`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use navlocks::{ClientId, RequestId};

use super::duration::say;
use super::target::Target;
use super::waits::{Edge, Waits, who};
use crate::exit::Failure;
use crate::printer;

/// The deepest level of the tree that is printed.
const DEPTH_MAX: usize = 12;

/// Print which client waits for which
///
/// As text: clients that block others first, their waiters below, indented. As dot: for
/// Graphviz, such as navlocks graph --format dot | dot -Tsvg; deadlocks are red, and dashed lines
/// lead to requests that wait themselves.
#[derive(Debug, Args)]
pub(super) struct Graph {
    /// The format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    target: Target,
}

/// A format of a graph.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Indented lines
    Text,
    /// Graphviz
    Dot,
}

impl Graph {
    pub(super) async fn perform(self) -> Result<(), Failure> {
        let waits = match self.target.connect_if_running().await? {
            Some(locks) => {
                let snapshot = self.target.query(&locks).await?;
                let waits = Waits::ask(&self.target, &locks, snapshot).await?;
                Target::finish(locks).await;
                waits
            }
            None => Waits::default(),
        };
        printer::print(&match self.format {
            Format::Text => text(&waits),
            Format::Dot => dot(&waits),
        })
    }
}

/// Returns the tree below each client that blocks others.
fn text(waits: &Waits) -> String {
    let mut text = String::new();
    let mut told: BTreeSet<RequestId> = BTreeSet::new();
    for root in waits.roots() {
        let edges: Vec<Edge<'_>> = blocked_by(waits, root);
        let Some(first) = edges.first() else { continue };
        let (holder, age) = (who(first.blocker), say(first.blocker.age));
        let verb = if first.hard { "holds" } else { "wants" };
        let names = &first.blocker.scope;
        let _ = writeln!(text, "{holder} {verb} {names} for {age}{}", mark(waits, root));
        tell(waits, root, 1, &mut told, &mut text);
    }
    if text.is_empty() {
        return "no request waits\n".to_owned();
    }
    for line in waits.deadlocks() {
        let _ = writeln!(text, "{line}");
    }
    if waits.left_out > 0 {
        let _ = writeln!(text, "{} further requests were not looked at", waits.left_out);
    }
    text
}

fn blocked_by(waits: &Waits, client: ClientId) -> Vec<Edge<'_>> {
    let all = waits.pending.iter().flat_map(|id| waits.edges(*id));
    all.filter(|edge| edge.blocker.client == client).collect()
}

fn tell(
    waits: &Waits,
    client: ClientId,
    depth: usize,
    told: &mut BTreeSet<RequestId>,
    text: &mut String,
) {
    for edge in blocked_by(waits, client) {
        if !told.insert(edge.waiter.request) || depth > DEPTH_MAX {
            continue;
        }
        let (indent, age) = ("  ".repeat(depth), say(edge.waiter.age));
        let mark = mark(waits, edge.waiter.client);
        let _ =
            writeln!(text, "{indent}{} waits for {} for {age}{mark}", who(edge.waiter), edge.name);
        tell(waits, edge.waiter.client, depth + 1, told, text);
    }
}

fn mark(waits: &Waits, client: ClientId) -> &'static str {
    if waits.is_deadlocked(client) { " [deadlock]" } else { "" }
}

/// Returns the graph for Graphviz: a node for each client, an edge for each wait.
fn dot(waits: &Waits) -> String {
    let mut text =
        String::from("digraph navlocks {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n");
    let mut nodes = BTreeSet::new();
    let mut edges = String::new();
    for edge in waits.pending.iter().flat_map(|id| waits.edges(*id)) {
        for info in [edge.waiter, edge.blocker] {
            if nodes.insert(info.client) {
                let red = if waits.is_deadlocked(info.client) { ", color=red" } else { "" };
                let _ =
                    writeln!(text, "  \"{}\" [label={}{red}];", info.client, quoted(&who(info)));
            }
        }
        let (from, to) = (edge.waiter.client, edge.blocker.client);
        let caught = waits.cycles.iter().any(|it| it.contains(&from) && it.contains(&to));
        let red = if caught { ", color=red" } else { "" };
        let dashed = if edge.hard { "" } else { ", style=dashed" };
        let label = quoted(&format!("{} for {}", edge.name, say(edge.waiter.age)));
        let _ = writeln!(edges, "  \"{from}\" -> \"{to}\" [label={label}{dashed}{red}];");
    }
    text + &edges + "}\n"
}

/// Returns untrusted text as a string of Graphviz.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}
