//! Claims, and how they are judged at the end of grace.

use crate::bug::Bug;
use crate::notes::Note;
use crate::protocol::Cluster;
use crate::state::{Ask, Body, Claim, ClientNumber, Entry, Known, NodeNumber, State, Wait};

impl Cluster {
    /// Takes a claim, once for each session and epoch, and never after the end of grace.
    pub(crate) fn receive_claim(
        &self,
        state: &mut State,
        client: ClientNumber,
        node: NodeNumber,
        claim: Claim,
    ) {
        let c = usize::from(client);
        let is_registered = state.registry.sessions[c];
        let Some(owner) = &mut state.nodes[usize::from(node)].owner else { return };
        if claim.epoch != owner.epoch || owner.heard[c].is_some() {
            return;
        }
        let epoch = owner.epoch;
        match &mut owner.grace {
            Some(grace) if is_registered => {
                grace.claims.push((client, claim));
                owner.heard[c] = Some(0);
            }
            Some(_) => {
                self.notes.take(Note::ClaimRefusedAfterLapse);
                self.send_to_client(state, node, client, epoch, Body::Refused);
            }
            None if self.has(Bug::ClaimAfterGrace) => {
                owner.heard[c] = Some(0);
                self.judge(state, node, &[(client, claim)]);
            }
            None => {
                self.notes.take(Note::ClaimRefusedAfterGrace);
                self.send_to_client(state, node, client, epoch, Body::Refused);
            }
        }
    }

    /// Ends grace: first records the end of sessions without a claim, then makes the first grant.
    pub(crate) fn end_grace(&self, state: &mut State, node: NodeNumber) {
        if !self.may_write(state, node) {
            return;
        }
        let Some(owner) = &mut state.nodes[usize::from(node)].owner else { return };
        let Some(grace) = owner.grace.take() else { return };
        state.registry.grace_over = owner.epoch;
        let mut has_missed = false;
        for (known, heard) in state.registry.sessions.iter_mut().zip(&owner.heard) {
            if *known && heard.is_none() {
                has_missed = true;
                *known = self.has(Bug::GraceEndNotRecorded);
            }
        }
        self.notes.take(if has_missed {
            Note::GraceEndsWithLeases
        } else {
            Note::GraceEndsWhenAllClaimed
        });
        self.note_meetings(&grace.claims);
        self.judge(state, node, &grace.claims);
    }

    /// Seats held claims in token order, then waiters by place, then the others.
    fn judge(&self, state: &mut State, node: NodeNumber, claims: &[(ClientNumber, Claim)]) {
        let mut order = claims.to_vec();
        if !self.has(Bug::ClaimsJudgedFirstCome) {
            order.sort_by_key(|(_, claim)| {
                let request = claim.request;
                match request.map(|request| request.known) {
                    Some(Known::Held(token)) => (0, (token, 0)),
                    Some(Known::Waiting(place)) => (1, place),
                    _ => (2, (0, 0)),
                }
            });
        }
        for &(client, claim) in &order {
            self.judge_one(state, node, client, claim);
        }
        self.grant(state, node);
        for &(client, claim) in claims {
            self.answer_claim(state, node, client, claim);
        }
    }

    fn judge_one(&self, state: &mut State, node: NodeNumber, client: ClientNumber, claim: Claim) {
        let Some(request) = claim.request else { return };
        let number = request.number;
        let ask = self.ask(client, number);
        match request.known {
            Known::Held(token) => {
                let is_victim = state.registry.taken.iter().any(|it| it.victim == (client, number));
                if is_victim && !self.has(Bug::ClaimAfterSteal) {
                    self.notes.take(Note::VictimsClaimRefused);
                    return;
                }
                self.notes.take(Note::HeldClaimAccepted);
                if ask.scope.count_ones() > 1 {
                    self.notes.take(Note::ScopeClaimedWhole);
                }
                state.note_accepted_claim(ask, token);
                let Some(owner) = &mut state.nodes[usize::from(node)].owner else { return };
                if owner.entries.iter().any(|it| it.token.is_some() && it.ask.conflicts(ask)) {
                    state.violation = Some("two claims of held locks conflict");
                }
                owner.next_token = owner.next_token.max(token + 1);
                let place = (0, 0);
                let entry = Entry { client, request: number, ask, token: Some(token), place };
                let held = owner.entries.iter().filter(|it| it.token.is_some()).count();
                owner.entries.insert(held, entry);
            }
            Known::Waiting(place) => {
                self.notes.take(Note::WaitingClaimSeated);
                self.seat(state, node, client, number, ask, Some(place));
            }
            Known::Sent if ask.wait == Wait::Steal => self.steal(state, client, node, number, ask),
            Known::Sent => self.seat(state, node, client, number, ask, None),
        }
    }

    fn answer_claim(
        &self,
        state: &mut State,
        node: NodeNumber,
        client: ClientNumber,
        claim: Claim,
    ) {
        let Some(owner) = &state.nodes[usize::from(node)].owner else { return };
        let named = claim.request.map(|request| {
            let mut entries = owner.entries.iter();
            let entry = entries.find(|it| (it.client, it.request) == (client, request.number));
            let known = entry.map(|entry| match entry.token {
                Some(token) => Known::Held(token),
                None => Known::Waiting(entry.place),
            });
            (request.number, known)
        });
        self.send_to_client(state, node, client, owner.epoch, Body::Claimed(named, claim.age));
    }

    pub(crate) fn ask(&self, client: ClientNumber, number: u8) -> Ask {
        self.scenario.scripts[usize::from(client)].asks[usize::from(number)]
    }

    fn note_meetings(&self, claims: &[(ClientNumber, Claim)]) {
        let asks = claims.iter().filter_map(|(client, claim)| {
            claim.request.map(|request| (self.ask(*client, request.number), request.known))
        });
        let asks: Vec<_> = asks.collect();
        let [(first, one), (second, other), ..] = asks[..] else { return };
        if first.shared != second.shared && first.conflicts(second) {
            self.notes.take(Note::SharedAndExclusiveClaimsMeet);
        }
        if matches!((one, other), (Known::Waiting(_), Known::Waiting(_))) {
            self.notes.take(Note::TwoWaitersClaim);
        }
    }
}
