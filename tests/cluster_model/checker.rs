//! Invariants of every state, and of the state after faults end.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use stateright::Model as _;

use crate::protocol::{Cluster, Step};
use crate::scenario::Script;
use crate::state::{Ask, Client, ClientNumber, Entry, Known, Owner, Session, State, Token};

/// One state in this many is healed: healing takes as long as a hundred states.
const HEALED_ONE_IN: u64 = 32;
/// Far more steps than healing needs.
const HEALING_STEPS_MAX: usize = 400;

impl State {
    /// Returns true if a steal by this request is recorded.
    pub(crate) fn is_thief(&self, request: (ClientNumber, u8)) -> bool {
        self.registry.taken.iter().any(|taken| taken.thief == request)
    }

    /// Checks that tokens grow along the grants of a name, and waiters are served by place.
    pub(crate) fn note_grant(&mut self, entry: Entry, token: Token, entries: &[Entry]) {
        for (name, (exclusive, all)) in self.history.granted.iter_mut().enumerate() {
            if entry.ask.scope & (1 << name) == 0 {
                continue;
            }
            let floor = if entry.ask.shared { *exclusive } else { *all };
            if token <= floor {
                self.violation = Some("a token did not grow");
            }
            *all = token.max(*all);
            if !entry.ask.shared {
                *exclusive = token.max(*exclusive);
            }
        }
        let is_passed = |it: &Entry| {
            it.token.is_none() && it.place < entry.place && it.ask.conflicts(entry.ask)
        };
        if entries.iter().any(is_passed) {
            self.violation = Some("a waiter was overtaken");
        }
    }

    /// Checks that an accepted claim had no other grant in between.
    pub(crate) fn note_accepted_claim(&mut self, ask: Ask, token: Token) {
        for (name, (exclusive, all)) in self.history.granted.iter().enumerate() {
            let latest = if ask.shared { exclusive } else { all };
            if ask.scope & (1 << name) != 0 && *latest > token {
                self.violation = Some("a claim was accepted after another grant");
            }
        }
    }
}

/// Returns the rule that a state breaks.
pub(crate) fn violation(cluster: &Cluster, state: &State) -> Option<&'static str> {
    if has_two_holders(cluster, state) {
        return Some("two clients believe that they hold the lock");
    }
    for node in &state.nodes {
        let Some(owner) = node.owner.as_ref() else { continue };
        if owner.epoch != state.registry.epoch || owner.grace.is_some() {
            continue;
        }
        if owner.entries.iter().any(|it| owner.heard[usize::from(it.client)].is_none()) {
            return Some("an entry belongs to no session");
        }
    }
    None
}

/// Compares the locks that clients take for held. The victim of a recorded steal may not know yet.
fn has_two_holders(cluster: &Cluster, state: &State) -> bool {
    let held = |(number, client): (usize, &Client)| {
        let request = client.request?;
        let is_held = matches!(request.known, Known::Held(_));
        let is_live = matches!(client.session, Session::Live | Session::Claiming);
        let key = (number as ClientNumber, request.number);
        let is_robbed = state.registry.taken.iter().any(|taken| taken.victim == key);
        let believes = is_held && is_live && cluster.client_believes(client) && !is_robbed;
        believes.then(|| cluster.scenario.scripts[number].asks[usize::from(request.number)])
    };
    let held: Vec<Ask> = state.clients.iter().enumerate().filter_map(held).collect();
    let mut pairs = held.iter().enumerate().flat_map(|(at, one)| held[..at].iter().zip([one; 8]));
    pairs.any(|(one, other)| one.conflicts(*other))
}

/// Checks that after faults end, every request is answered and no request without a client is left.
pub(crate) fn heals(cluster: &Cluster, state: &State) -> bool {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    if state.violation.is_some() || !hasher.finish().is_multiple_of(HEALED_ONE_IN) {
        return true;
    }
    let mut state = state.clone();
    for _ in 0..HEALING_STEPS_MAX {
        if is_healed(cluster, &state) {
            return true;
        }
        let Some(next) = cluster.next_state(&state, healing_step(cluster, &state)) else {
            return false;
        };
        if next.violation.is_some() {
            return false;
        }
        state = next;
    }
    false
}

fn is_healed(cluster: &Cluster, state: &State) -> bool {
    let is_done = |(client, script): (&Client, &Script)| {
        let is_over = client.session == Session::Ended;
        is_over || (client.request.is_none() && usize::from(client.next) == script.asks.len())
    };
    let mut clients = state.clients.iter().zip(&cluster.scenario.scripts);
    let owner = state.registry.owner.and_then(|node| state.nodes[usize::from(node)].owner.as_ref());
    let serves = |owner: &Owner| owner.grace.is_none() && owner.entries.is_empty();
    clients.all(is_done) && owner.is_some_and(serves)
}

/// Returns the next step of a cluster in which all messages arrive, nodes renew and clients find
/// the owner.
fn healing_step(cluster: &Cluster, state: &State) -> Step {
    let clients = 0..state.clients.len() as u8;
    let nodes = 0..state.nodes.len() as u8;
    let is_owner = |node: u8| {
        let owner = state.nodes[usize::from(node)].owner.as_ref();
        state.registry.owner == Some(node)
            && owner.is_some_and(|owner| owner.epoch == state.registry.epoch)
    };
    let mut steps = Vec::new();
    for node in nodes.clone() {
        steps.extend([Step::AnswerRenewal(node), Step::ApplyRenewal(node)]);
        if !cluster.believes(&state.nodes[usize::from(node)]) {
            steps.push(Step::SendRenewal(node));
        }
    }
    for client in clients.clone() {
        for node in nodes.clone() {
            steps.extend([Step::ClientReceives(client, node), Step::NodeReceives(client, node)]);
            if is_owner(node) {
                steps.extend([Step::Claim(client, node), Step::Hello(client, node)]);
            }
        }
        steps.extend([Step::Release(client), Step::Ask(client)]);
        if !cluster.client_believes(&state.clients[usize::from(client)]) {
            steps.push(Step::Ping(client));
        }
    }
    steps.extend(nodes.clone().map(Step::EndGrace));
    for node in nodes.clone() {
        steps.extend(clients.clone().map(|client| Step::Lapse(node, client)));
    }
    if !nodes.clone().any(is_owner) {
        steps.extend(nodes.clone().map(Step::Take));
        steps.extend(nodes.clone().map(Step::Look));
        steps.extend(nodes.map(Step::Restart));
    }
    let possible = |step: &Step| cluster.is_possible(state, *step);
    steps.into_iter().find(possible).unwrap_or(Step::Tick)
}
