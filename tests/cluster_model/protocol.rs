//! The protocol: its steps, and the effect of each.

use std::collections::VecDeque;

use stateright::{Model, Property};

use crate::bug::Bug;
use crate::checker;
use crate::guard::is_within_budget;
use crate::notes::{Note, Notes};
use crate::scenario::Scenario;
use crate::state::{
    Age, Body, Claim, Client, ClientNumber, Epoch, Grace, History, Known, Node, NodeNumber, Owner,
    Registry, Request, Session, State, ToClient, ToNode, Wait,
};

/// Messages under way on one connection in one direction.
pub(crate) const CHANNEL_MAX: usize = 2;
/// The two properties.
pub(crate) const RULES: &str = "no rule is broken";
pub(crate) const HEALING: &str = "all is answered after healing";
/// Tokens reserved at a time.
pub(crate) const TOKEN_BLOCK: u8 = 2;

/// The nodes and clients of a scenario.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) scenario: Scenario,
    pub(crate) bug: Option<Bug>,
    pub(crate) notes: Notes,
}

/// One step of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Tick,
    SendRenewal(NodeNumber),
    ApplyRenewal(NodeNumber),
    AnswerRenewal(NodeNumber),
    Look(NodeNumber),
    Take(NodeNumber),
    Restart(NodeNumber),
    HandOver(NodeNumber),
    EndGrace(NodeNumber),
    /// A peer without a session sends the largest epoch.
    StrangeHello(NodeNumber),
    Lapse(NodeNumber, ClientNumber),
    /// Registers a session whose welcome was sent already: only with the bug.
    RegisterLate(NodeNumber, ClientNumber),
    NodeReceives(ClientNumber, NodeNumber),
    ClientReceives(ClientNumber, NodeNumber),
    Hello(ClientNumber, NodeNumber),
    Ask(ClientNumber),
    Release(ClientNumber),
    Ping(ClientNumber),
    Claim(ClientNumber, NodeNumber),
    Bye(ClientNumber),
}

impl Model for Cluster {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![self.start()]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.violation.is_some() {
            return;
        }
        let candidates = self.candidates(state);
        steps.extend(
            candidates
                .into_iter()
                .filter(|&step| is_within_budget(state, step) && self.is_possible(state, step)),
        );
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        self.apply(&mut state, step);
        self.forget_what_cannot_matter(&mut state);
        if state.violation.is_none() {
            state.violation = checker::violation(self, &state);
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(RULES, |_, state: &State| state.violation.is_none()),
            Property::always(HEALING, checker::heals),
        ]
    }
}

impl Cluster {
    pub(crate) fn new(scenario: Scenario, bug: Option<Bug>) -> Self {
        Self { scenario, bug, notes: Notes::default() }
    }

    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Returns the first state: the first node owns the slot and serves; early sessions are known.
    fn start(&self) -> State {
        let scenario = &self.scenario;
        let clients = scenario.scripts.len();
        let begun: Vec<bool> = scenario.scripts.iter().map(|script| script.begun).collect();
        let owner = Owner {
            epoch: 1,
            grace: None,
            entries: Vec::new(),
            heard: begun.iter().map(|begun| begun.then_some(0)).collect(),
            next_token: 1,
            tokens_reserved_to: TOKEN_BLOCK,
            next_place: 0,
        };
        let node = Node {
            alive: true,
            renewed: scenario.node_lease + 1,
            renewal: None,
            renewals_left: scenario.renewals,
            seen: None,
            owner: None,
        };
        let mut nodes = vec![node; usize::from(scenario.nodes)];
        nodes[0].owner = Some(owner);
        nodes[0].renewed = 0;
        let client = |&begun: &bool| Client {
            session: if begun { Session::Live } else { Session::None },
            belief: 0,
            epoch: 1,
            at: 0,
            next: 0,
            request: None,
            ping_on_its_way: false,
            pings_left: scenario.pings,
        };
        let mut state = State {
            registry: Registry {
                owner: Some(0),
                owner_is_current: true,
                epoch: 1,
                epoch_floor: 0,
                sessions: begun.clone(),
                taken: Vec::new(),
                tokens_reserved_to: TOKEN_BLOCK,
                grace_over: 1,
            },
            clients: begun.iter().map(client).collect(),
            to_node: vec![vec![VecDeque::new(); nodes.len()]; clients],
            to_client: vec![vec![VecDeque::new(); nodes.len()]; clients],
            nodes,
            restarts: 0,
            history: History { granted: vec![(0, 0); 2] },
            violation: None,
        };
        if scenario.is_held {
            for step in [Step::Ask(0), Step::NodeReceives(0, 0), Step::ClientReceives(0, 0)] {
                self.apply(&mut state, step);
            }
        }
        state
    }

    /// Makes states with the same future equal: closed connections, messages to be ignored, idle
    /// timers.
    fn forget_what_cannot_matter(&self, state: &mut State) {
        let is_last = state.registry.epoch == self.scenario.epochs;
        for (number, node) in state.nodes.iter_mut().enumerate() {
            let is_deposed = !node.alive && !self.believes(node);
            if is_deposed {
                if node.renewal.is_some() {
                    self.notes.take(Note::DeposedOwnersRenewalFails);
                }
                node.owner = None;
            }
            if is_last {
                node.seen = None;
            }
            if node.owner.is_none() {
                (node.renewal, node.renewed) = (None, self.scenario.node_lease + 1);
                state.to_node.iter_mut().for_each(|channels| channels[number].clear());
            }
        }
        for (client, channels) in state.clients.iter_mut().zip(&mut state.to_client) {
            if client.session == Session::Ended {
                (client.belief, client.ping_on_its_way, client.pings_left) = (0, false, 0);
                channels.iter_mut().for_each(VecDeque::clear);
            }
            if self.has(Bug::EpochIgnoredByClient) {
                continue;
            }
            for channel in channels {
                let before = channel.len();
                channel.retain(|message| message.epoch >= client.epoch);
                if channel.len() < before {
                    self.notes.take(Note::OldMessageIgnoredAfterClaim);
                }
            }
        }
    }

    fn candidates(&self, state: &State) -> Vec<Step> {
        let mut steps = vec![Step::Tick];
        let clients = 0..state.clients.len() as u8;
        for node in 0..self.scenario.nodes {
            steps.extend([
                Step::SendRenewal(node),
                Step::ApplyRenewal(node),
                Step::AnswerRenewal(node),
                Step::Look(node),
                Step::Take(node),
                Step::Restart(node),
                Step::HandOver(node),
                Step::EndGrace(node),
                Step::StrangeHello(node),
            ]);
            for client in clients.clone() {
                steps.extend([
                    Step::Lapse(node, client),
                    Step::RegisterLate(node, client),
                    Step::NodeReceives(client, node),
                    Step::ClientReceives(client, node),
                    Step::Hello(client, node),
                    Step::Claim(client, node),
                ]);
            }
        }
        for client in clients {
            steps.extend([
                Step::Ask(client),
                Step::Release(client),
                Step::Ping(client),
                Step::Bye(client),
            ]);
        }
        steps
    }

    fn apply(&self, state: &mut State, step: Step) {
        match step {
            Step::Tick => self.tick(state),
            Step::SendRenewal(node) => {
                let node = &mut state.nodes[usize::from(node)];
                node.renewal = Some((0, false));
                node.renewals_left = node.renewals_left.saturating_sub(1);
            }
            Step::ApplyRenewal(node) => self.apply_renewal(state, node),
            Step::AnswerRenewal(node) => {
                let node = &mut state.nodes[usize::from(node)];
                if let Some((age, _)) = node.renewal.take() {
                    node.renewed = age;
                }
            }
            Step::Look(node) => state.nodes[usize::from(node)].seen = Some(0),
            Step::Take(node) => self.take(state, node),
            Step::Restart(node) => self.restart(state, node),
            Step::HandOver(node) => self.hand_over(state, node),
            Step::EndGrace(node) => self.end_grace(state, node),
            Step::StrangeHello(_) => self.ignore_stranger(state),
            Step::Lapse(node, client) => self.lapse(state, node, client),
            Step::RegisterLate(_, client) => {
                state.registry.sessions[usize::from(client)] = true;
            }
            Step::NodeReceives(client, node) => self.node_receives(state, client, node),
            Step::ClientReceives(client, node) => self.client_receives(state, client, node),
            Step::Hello(client, node) => {
                let it = &mut state.clients[usize::from(client)];
                (it.session, it.at) = (Session::Asked, node);
                self.send_to_node(state, client, ToNode::Hello(0));
            }
            Step::Ask(client) => {
                let it = &mut state.clients[usize::from(client)];
                let number = it.next;
                it.next += 1;
                it.request = Some(Request { number, known: Known::Sent });
                self.send_to_node(state, client, ToNode::Ask(number));
            }
            Step::Release(client) => {
                let request = state.clients[usize::from(client)].request.take();
                if let Some(Request { number, .. }) = request {
                    self.send_to_node(state, client, ToNode::Release(number));
                }
            }
            Step::Ping(client) => {
                let it = &mut state.clients[usize::from(client)];
                it.ping_on_its_way = true;
                it.pings_left = it.pings_left.saturating_sub(1);
                self.send_to_node(state, client, ToNode::Ping(0));
            }
            Step::Claim(client, node) => self.claim(state, client, node),
            Step::Bye(client) => {
                let it = &mut state.clients[usize::from(client)];
                (it.session, it.request) = (Session::Ended, None);
                self.send_to_node(state, client, ToNode::Bye);
            }
        }
    }

    fn tick(&self, state: &mut State) {
        let (node_lease, lease) = (self.scenario.node_lease, self.scenario.session_lease);
        for node in &mut state.nodes {
            grow(&mut node.renewed, node_lease + 1);
            if let Some((age, _)) = &mut node.renewal {
                grow(age, node_lease + 1);
            }
            if let Some(age) = &mut node.seen {
                grow(age, node_lease);
            }
            let Some(owner) = &mut node.owner else { continue };
            owner.heard.iter_mut().flatten().for_each(|age| grow(age, lease));
            if let Some(grace) = &mut owner.grace {
                grow(&mut grace.won, lease);
                grace.claims.iter_mut().for_each(|(_, claim)| grow(&mut claim.age, lease));
            }
        }
        for client in &mut state.clients {
            grow(&mut client.belief, lease);
        }
        for message in state.to_node.iter_mut().flatten().flatten() {
            match message {
                ToNode::Hello(age) | ToNode::Ping(age) => grow(age, lease),
                ToNode::Claim(claim) => grow(&mut claim.age, lease),
                ToNode::Ask(_) | ToNode::Release(_) | ToNode::Bye => {}
            }
        }
        for message in state.to_client.iter_mut().flatten().flatten() {
            if let Body::Welcome(age) | Body::Pong(age) | Body::Claimed(_, age) = &mut message.body
            {
                grow(age, lease);
            }
        }
    }

    pub(crate) fn send_to_node(&self, state: &mut State, client: ClientNumber, message: ToNode) {
        let node = state.clients[usize::from(client)].at;
        state.to_node[usize::from(client)][usize::from(node)].push_back(message);
    }

    /// Sends a message. All messages of an epoch are sent before the next epoch begins.
    pub(crate) fn send_to_client(
        &self,
        state: &mut State,
        node: NodeNumber,
        client: ClientNumber,
        epoch: Epoch,
        body: Body,
    ) {
        if epoch < state.registry.epoch {
            state.violation = Some("an owner sent a message after its successor had won");
        }
        let channel = &mut state.to_client[usize::from(client)][usize::from(node)];
        channel.push_back(ToClient { epoch, body });
    }

    /// Returns the owner of a new grace: only the registry is known.
    pub(crate) fn new_owner(&self, state: &State) -> Owner {
        let reserved = state.registry.tokens_reserved_to;
        Owner {
            epoch: state.registry.epoch,
            grace: Some(Grace { won: 0, claims: Vec::new() }),
            entries: Vec::new(),
            heard: vec![None; state.clients.len()],
            next_token: reserved + 1,
            tokens_reserved_to: reserved,
            next_place: 0,
        }
    }

    /// Sends the claim of a client: only the locks that it still takes for held.
    fn claim(&self, state: &mut State, client: ClientNumber, node: NodeNumber) {
        let believes = self.client_believes(&state.clients[usize::from(client)]);
        let Some(owner) = &state.nodes[usize::from(node)].owner else { return };
        let epoch = owner.epoch;
        let it = &mut state.clients[usize::from(client)];
        let is_held = it.request.is_some_and(|request| matches!(request.known, Known::Held(_)));
        let forgets = !self.has(Bug::EndNotRecorded) && !self.has(Bug::GraceEndNotRecorded);
        if is_held && !believes && forgets {
            it.request = None;
        }
        let is_lost_steal = |request: Request| {
            request.known == Known::Sent
                && self.ask(client, request.number).wait == Wait::Steal
                && !self.has(Bug::StealClaimed)
        };
        if it.request.is_some_and(is_lost_steal) {
            self.notes.take(Note::StealInDoubtNotClaimed);
            it.request = None;
        }
        if it.request.is_none() {
            self.notes.take(Note::IdleSessionClaimsNothing);
        }
        // A claim has a connection of its own.
        state.to_node[usize::from(client)][usize::from(node)].clear();
        let claim = Claim { epoch, request: it.request, age: 0 };
        (it.session, it.epoch, it.at) = (Session::Claiming, epoch, node);
        it.ping_on_its_way = false;
        self.send_to_node(state, client, ToNode::Claim(claim));
    }
}

fn grow(age: &mut Age, max: Age) {
    *age = (*age + 1).min(max);
}
