//! `navlocks why`.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::Args;
use navlocks::{Explained, Name, RequestInfo};

use super::waits::{Over, Waits, who};
use crate::command::duration::say;
use crate::command::locking::steal::single;
use crate::command::services::recovery;
use crate::command::short;
use crate::command::target::Target;
use crate::exit::Failure;
use crate::printer;
use crate::run::allowed;

/// The most waiters that are listed, and the longest chain of waits that is followed.
const WAITERS_MAX: usize = 20;
const STEPS_MAX: usize = 10;

/// Explain why a name is held, and what its queue waits for
///
/// In sentences: the holder, the waiters, and the locks that the holder itself waits for, across
/// deadlocks.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The name
    #[arg(value_name = "NAME")]
    name: Vec<OsString>,
    #[command(flatten)]
    target: Target,
}

impl Why {
    pub(crate) async fn perform(self) -> Result<(), Failure> {
        let name = single(&self.name)?;
        let Some(locks) = self.target.connect_if_used().await? else {
            return printer::print(&free(&name));
        };
        let reason = self.target.reason(&locks).await?;
        let unclaimed = self.target.answer(locks.unclaimed_sessions()).await?;
        let text = match reason {
            // A service that waits for sessions does not say which names it holds back.
            _ if !unclaimed.is_empty() => unclaimed
                .iter()
                .map(|session| {
                    format!("'{}' may be held: {}\n", short(&name), recovery::sentence(session))
                })
                .collect(),
            Some(reason) => format!("{reason}\n"),
            None => {
                let waits = Waits::ask(&self.target, &locks, Explained::All).await?;
                explain(&waits, &name)
            }
        };
        Target::finish(locks).await;
        printer::print(&text)
    }
}

fn free(name: &Name) -> String {
    format!("'{}' is free: no request holds it or waits for it\n", short(name))
}

fn explain(waits: &Waits, name: &Name) -> String {
    let wants = |info: &&RequestInfo| info.scope.contains(name);
    let holders: Vec<&RequestInfo> =
        waits.all().filter(wants).filter(|info| info.token.is_some()).collect();
    let waiters: Vec<&RequestInfo> =
        waits.pending.iter().filter_map(|id| waits.info(*id)).filter(wants).collect();
    if holders.is_empty() && waiters.is_empty() {
        return free(name);
    }
    let shown = short(name);
    let mut text = String::new();
    for info in holders.iter().take(WAITERS_MAX) {
        let with = match info.scope.names().len() {
            1 => String::new(),
            count => format!(", together with {} other names", count - 1),
        };
        let (mode, age) = (info.mode, say(info.age));
        let left = info.left.map(|left| format!(" and at most {} more", say(left)));
        let left = left.unwrap_or_default();
        let _ = writeln!(text, "'{shown}' is held by {} for {age}{left}, {mode}{with}", who(info));
    }
    if holders.len() > WAITERS_MAX {
        let _ = writeln!(text, "and by {} others", holders.len() - WAITERS_MAX);
    }
    if holders.is_empty() {
        let _ = writeln!(
            text,
            "'{shown}' is not held: its first waiter needs other names at the same time"
        );
    }
    match waiters.len() {
        0 => text.push_str("no request waits for it\n"),
        1 => text.push_str("1 request waits for it:\n"),
        count => {
            let _ = writeln!(text, "{count} requests wait for it:");
        }
    }
    for (index, info) in waiters.iter().take(WAITERS_MAX).enumerate() {
        let (hard, soft) = waits.count(info.request);
        let locks = plural(hard, "held lock");
        let earlier = plural(soft, "earlier request");
        let behind = match (hard, soft) {
            (0, _) => earlier,
            (_, 0) => locks,
            _ => format!("{locks} and {earlier}"),
        };
        let (number, age, allowed) = (index + 1, say(info.age), allowed(info.mode));
        let _ = writeln!(text, "  {number}. {} for {age}, behind {behind}{allowed}", who(info));
    }
    if waiters.len() > WAITERS_MAX {
        let _ = writeln!(text, "  and {} more", waiters.len() - WAITERS_MAX);
    }
    for info in holders.iter().copied().chain(waiters.first().copied()) {
        follow(waits, info, name, &mut text);
    }
    // A deadlock of other names is no reason here.
    let clients = waits.reached(holders.iter().chain(&waiters).map(|info| info.client));
    for line in waits.deadlocks(|cycle| cycle.clients().iter().any(|it| clients.contains(it))) {
        text.push_str(&line);
        text.push('\n');
    }
    if waits.left_out > 0 {
        let _ = writeln!(text, "{} further requests were not looked at", waits.left_out);
    }
    text
}

/// Adds a line for each step of the chain of waits that begins at a client.
fn follow(waits: &Waits, info: &RequestInfo, name: &Name, text: &mut String) {
    let edges = waits.edges();
    let mut at = info.client;
    for _ in 0..STEPS_MAX {
        let is_known = |over| matches!(over, Over::Held(it) | Over::Earlier(it) if it == name);
        let next = edges.iter().find(|edge| edge.waiter.client == at && !is_known(edge.over));
        let Some(edge) = next else { return };
        let (waiter, blocker) = (who(edge.waiter), who(edge.blocker));
        let (age, held) = (say(edge.waiter.age), say(edge.blocker.age));
        let line = match edge.over {
            Over::Held(name) => {
                format!(
                    "{waiter} itself waits for '{name}' for {age}, held by {blocker} for {held}\n"
                )
            }
            Over::Earlier(name) => format!(
                "{waiter} itself waits for '{name}' for {age}, wanted earlier by {blocker} for {held}\n"
            ),
            Over::Command => format!("{waiter} waits for its command {blocker}\n"),
        };
        if text.contains(&line) {
            return;
        }
        text.push_str(&line);
        at = edge.blocker.client;
    }
}

fn plural(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}
