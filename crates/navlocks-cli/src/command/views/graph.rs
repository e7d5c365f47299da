//! `navlocks graph`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use navlocks::{ClientId, Explained, RequestId};

use super::waits::{Edge, Over, Waits, who};
use crate::command::duration::say;
use crate::command::target::Target;
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
pub(crate) struct Graph {
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
    pub(crate) async fn perform(self) -> Result<(), Failure> {
        let waits = match self.target.connect_if_running().await? {
            Some(locks) => {
                let waits = Waits::ask(&self.target, &locks, Explained::All).await?;
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
    let edges = waits.edges();
    for root in waits.roots() {
        let is_new = |edge: &&Edge<'_>| !told.contains(&edge.waiter.request);
        let Some(first) = blocked_by(&edges, root).find(is_new) else { continue };
        let (holder, age) = (who(first.blocker), say(first.blocker.age));
        let verb = if first.blocker.token.is_some() { "holds" } else { "wants" };
        let names = &first.blocker.scope;
        let _ = writeln!(text, "{holder} {verb} {names} for {age}{}", mark(waits, root));
        tell(waits, &edges, root, 1, &mut told, &mut text);
    }
    if text.is_empty() {
        return "no request waits\n".to_owned();
    }
    for line in waits.deadlocks(|_| true) {
        let _ = writeln!(text, "{line}");
    }
    if waits.left_out > 0 {
        let _ = writeln!(text, "{} further requests were not looked at", waits.left_out);
    }
    text
}

fn blocked_by<'a>(edges: &'a [Edge<'a>], client: ClientId) -> impl Iterator<Item = &'a Edge<'a>> {
    edges.iter().filter(move |edge| edge.blocker.client == client)
}

fn tell(
    waits: &Waits,
    edges: &[Edge<'_>],
    client: ClientId,
    depth: usize,
    told: &mut BTreeSet<RequestId>,
    text: &mut String,
) {
    for edge in blocked_by(edges, client) {
        if !told.insert(edge.waiter.request) || depth > DEPTH_MAX {
            continue;
        }
        let (indent, waiter) = ("  ".repeat(depth), who(edge.waiter));
        let (age, mark) = (say(edge.waiter.age), mark(waits, edge.waiter.client));
        let _ = match edge.over {
            Over::Held(name) | Over::Earlier(name) => {
                writeln!(text, "{indent}{waiter} waits for {name} for {age}{mark}")
            }
            Over::Command => {
                let names = &edge.waiter.scope;
                writeln!(text, "{indent}{waiter} holds {names} and waits for this command{mark}")
            }
        };
        tell(waits, edges, edge.waiter.client, depth + 1, told, text);
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
    for edge in waits.edges() {
        for info in [edge.waiter, edge.blocker] {
            if nodes.insert(info.client) {
                let red = if waits.is_deadlocked(info.client) { ", color=red" } else { "" };
                let _ =
                    writeln!(text, "  \"{}\" [label={}{red}];", info.client, quoted(&who(info)));
            }
        }
        let (from, to) = (edge.waiter.client, edge.blocker.client);
        let holds = |cycle: &[ClientId]| cycle.contains(&from) && cycle.contains(&to);
        let caught = waits.cycles.iter().any(|cycle| holds(cycle.clients()));
        let red = if caught { ", color=red" } else { "" };
        let (dashed, label) = match edge.over {
            Over::Held(name) => ("", format!("{name} for {}", say(edge.waiter.age))),
            Over::Earlier(name) => {
                (", style=dashed", format!("{name} for {}", say(edge.waiter.age)))
            }
            Over::Command => ("", "its command".to_owned()),
        };
        let label = quoted(&label);
        let _ = writeln!(edges, "  \"{from}\" -> \"{to}\" [label={label}{dashed}{red}];");
    }
    text + &edges + "}\n"
}

/// Returns untrusted text as a string of Graphviz.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}
