//! The steps that are possible in a state.

use crate::bug::Bug;
use crate::notes::Note;
use crate::protocol::{CHANNEL_MAX, Cluster, Step};
use crate::state::{
    Age, Client, ClientNumber, Known, Node, NodeNumber, Owner, Session, State, ToNode, Wait,
};

impl Cluster {
    /// Returns true if an owner may send grants, welcomes and pongs now.
    pub(crate) fn believes(&self, node: &Node) -> bool {
        match self.bug {
            Some(Bug::BeliefIgnored) => true,
            Some(Bug::BeliefOfEightEighths) => node.renewed <= self.scenario.node_lease,
            _ => is_within(node.renewed, self.scenario.node_lease),
        }
    }

    /// Returns true if a client takes its locks for held now.
    pub(crate) fn client_believes(&self, client: &Client) -> bool {
        is_within(client.belief, self.scenario.session_lease)
    }

    pub(crate) fn is_possible(&self, state: &State, step: Step) -> bool {
        let at = |node: NodeNumber| &state.nodes[usize::from(node)];
        let of = |client: ClientNumber| &state.clients[usize::from(client)];
        let has_room = |client: ClientNumber, node: NodeNumber| {
            state.to_node[usize::from(client)][usize::from(node)].len() < CHANNEL_MAX
        };
        match step {
            Step::Tick => true,
            Step::SendRenewal(node) => {
                // A renewal before any time has passed changes nothing.
                at(node).owner.is_some() && at(node).renewal.is_none() && at(node).renewed > 0
            }
            Step::ApplyRenewal(node) => at(node).renewal.is_some_and(|(_, applied)| !applied),
            Step::AnswerRenewal(node) => at(node).renewal.is_some_and(|(_, applied)| applied),
            Step::Look(node) => {
                at(node).owner.is_none()
                    && at(node).seen.is_none()
                    && at(node).alive
                    && state.registry.owner.is_some()
                    && state.registry.epoch < self.scenario.epochs
            }
            Step::Take(node) => self.may_take(state, node),
            Step::Restart(node) => self.may_restart(state, node),
            Step::HandOver(node) => {
                self.scenario.hand_over
                    && state.registry.epoch < self.scenario.epochs
                    && state.registry.owner == Some(node)
                    && at(node).owner.as_ref().is_some_and(|owner| {
                        owner.epoch == state.registry.epoch && self.believes(at(node))
                    })
            }
            Step::EndGrace(node) => self.may_end_grace(state, node),
            Step::StrangeHello(node) => at(node).owner.is_some(),
            Step::Lapse(node, client) => at(node).owner.as_ref().is_some_and(|owner| {
                let heard = owner.heard[usize::from(client)];
                owner.grace.is_none()
                    && heard.is_some_and(|age| age >= self.scenario.session_lease)
                    && self.believes(at(node))
            }),
            Step::RegisterLate(node, client) => {
                self.has(Bug::SessionRegisteredAfterWelcome)
                    && !state.registry.sessions[usize::from(client)]
                    && at(node).owner.as_ref().is_some_and(|owner| {
                        owner.epoch == state.registry.epoch
                            && owner.heard[usize::from(client)].is_some()
                    })
            }
            Step::NodeReceives(client, node) => self.may_receive(state, client, node),
            Step::ClientReceives(client, node) => {
                !state.to_client[usize::from(client)][usize::from(node)].is_empty()
            }
            Step::Hello(client, node) => {
                let is_new = of(client).session == Session::None;
                let again = of(client).session == Session::Asked && of(client).at != node;
                (is_new || again)
                    && at(node).owner.as_ref().is_some_and(|owner| owner.grace.is_none())
                    && has_room(client, node)
            }
            Step::Ask(client) => {
                let script = &self.scenario.scripts[usize::from(client)];
                is_at_work(of(client).session)
                    && of(client).request.is_none()
                    && usize::from(of(client).next) < script.asks.len()
                    && has_room(client, of(client).at)
            }
            Step::Release(client) => {
                let held = of(client).request.map(|request| request.known);
                is_at_work(of(client).session)
                    && matches!(held, Some(Known::Held(_)))
                    && has_room(client, of(client).at)
            }
            Step::Ping(client) => {
                is_at_work(of(client).session)
                    && !of(client).ping_on_its_way
                    && of(client).belief > 0
                    && has_room(client, of(client).at)
            }
            Step::Claim(client, node) => {
                let newer = |owner: &Owner| owner.epoch > of(client).epoch;
                is_at_work(of(client).session)
                    && at(node).owner.as_ref().is_some_and(newer)
                    && has_room(client, node)
            }
            Step::Bye(client) => {
                self.scenario.scripts[usize::from(client)].says_bye
                    && is_at_work(of(client).session)
                    && has_room(client, of(client).at)
            }
        }
    }

    /// Returns true after a whole node lease without a renewal, or when the slot was given away.
    fn may_take(&self, state: &State, node: NodeNumber) -> bool {
        let taker = &state.nodes[usize::from(node)];
        let registry = &state.registry;
        let silent = match taker.seen {
            Some(age) => age >= self.scenario.node_lease,
            None => self.has(Bug::TakeoverComparesNothing),
        };
        taker.alive
            && taker.owner.is_none()
            && registry.epoch < self.scenario.epochs
            && (registry.owner.is_none() || silent)
    }

    fn may_restart(&self, state: &State, node: NodeNumber) -> bool {
        let it = &state.nodes[usize::from(node)];
        let ended = !it.alive;
        let by_choice = it.owner.is_some() && state.restarts < self.scenario.restarts;
        (ended || by_choice) && state.registry.epoch < self.scenario.epochs
    }

    fn may_end_grace(&self, state: &State, node: NodeNumber) -> bool {
        let it = &state.nodes[usize::from(node)];
        let Some(owner) = &it.owner else { return false };
        let Some(grace) = &owner.grace else { return false };
        let lease = self.scenario.session_lease;
        let wait = if self.has(Bug::GraceCutShort) { lease / 2 } else { lease };
        let all_claimed = state.registry.sessions.iter().zip(&owner.heard);
        let mut all_claimed = all_claimed.map(|(known, heard)| !known || heard.is_some());
        self.believes(it) && (grace.won >= wait || all_claimed.all(|claimed| claimed))
    }

    /// Returns true if a node may take the message: during grace only claims and pings.
    fn may_receive(&self, state: &State, client: ClientNumber, node: NodeNumber) -> bool {
        let (client, node) = (usize::from(client), usize::from(node));
        let Some(message) = state.to_node[client][node].front() else { return false };
        let Some(owner) = &state.nodes[node].owner else { return true };
        if !self.believes(&state.nodes[node]) {
            self.notes.take(Note::OwnerWithoutBeliefKeepsSilent);
            return false;
        }
        if state.to_client[client][node].len() >= CHANNEL_MAX {
            return false;
        }
        if owner.grace.is_none() {
            return true;
        }
        match *message {
            ToNode::Claim(_) | ToNode::Ping(_) => true,
            ToNode::Ask(number) => {
                let ask = self.scenario.scripts[client].asks[usize::from(number)];
                let is_early = ask.wait == Wait::IfAvailable;
                if is_early {
                    self.notes.take(Note::IfAvailableWaitsForGrace);
                }
                is_early && self.has(Bug::IfAvailableAnsweredInGrace)
            }
            ToNode::Release(_) => {
                self.notes.take(Note::ReleaseWaitsBehindClaim);
                false
            }
            ToNode::Hello(_) | ToNode::Bye => false,
        }
    }
}

/// Bounds pings and renewals, which could repeat for ever.
pub(crate) fn is_within_budget(state: &State, step: Step) -> bool {
    match step {
        Step::Ping(client) => state.clients[usize::from(client)].pings_left > 0,
        Step::SendRenewal(node) => state.nodes[usize::from(node)].renewals_left > 0,
        _ => true,
    }
}

/// Returns true if a session can send: a client continues while its claim is judged.
fn is_at_work(session: Session) -> bool {
    matches!(session, Session::Live | Session::Claiming)
}

/// Returns true within seven eighths of a lease.
fn is_within(age: Age, lease: Age) -> bool {
    u16::from(age) * 8 < u16::from(lease) * 7
}
