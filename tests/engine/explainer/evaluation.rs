//! The explainer's sentence about evaluation, compared with the engine in every short history.
//!
//! The oracle implements that sentence alone: requests stand in a list; a request is granted when
//! no earlier entry of the list conflicts with it; the list is evaluated in order at each request,
//! release and abort.

use navlocks_core::{Answer, Event, LockManager, Request, RequestId, Scope, State};

use crate::support::{manager, s, x};

/// All requests: every non-empty scope of two names, in both modes.
const SCOPES: [&[&str]; 3] = [&["a"], &["b"], &["a", "b"]];

/// One input.
#[derive(Clone, Copy, Debug)]
enum Input {
    /// Requests `SCOPES[scope]`.
    Ask { scope: usize, exclusive: bool },
    /// Removes the entry at this place of the list: by release if granted, by abort if not.
    Leave { place: usize },
}

/// One line of the oracle's list.
#[derive(Clone, Copy)]
struct Line {
    number: usize,
    scope: usize,
    exclusive: bool,
    granted: bool,
}

impl Line {
    fn conflicts(&self, other: &Self) -> bool {
        let shares_a_name =
            SCOPES[self.scope].iter().any(|name| SCOPES[other.scope].contains(name));
        shares_a_name && (self.exclusive || other.exclusive)
    }
}

#[derive(Default)]
struct Oracle {
    list: Vec<Line>,
    asked: usize,
}

impl Oracle {
    /// Applies an input. Returns the numbers of the granted requests, in order.
    fn input(&mut self, input: Input) -> Vec<usize> {
        match input {
            Input::Ask { scope, exclusive } => {
                self.list.push(Line { number: self.asked, scope, exclusive, granted: false });
                self.asked += 1;
            }
            Input::Leave { place } => {
                self.list.remove(place);
            }
        }
        let mut grants = Vec::new();
        for at in 0..self.list.len() {
            let (earlier, line) = self.list.split_at_mut(at);
            let line = &mut line[0];
            if !line.granted && !earlier.iter().any(|other| other.conflicts(line)) {
                line.granted = true;
                grants.push(line.number);
            }
        }
        grants
    }

    fn numbers(&self, granted: bool) -> Vec<usize> {
        self.list.iter().filter(|line| line.granted == granted).map(|line| line.number).collect()
    }
}

fn request_of(scope: usize, exclusive: bool) -> Request {
    let scope = Scope::new(SCOPES[scope].iter().copied()).expect("no scope is empty");
    if exclusive { Request::exclusive(scope) } else { Request::shared(scope) }
}

/// The engine beside the oracle, with the same numbers of requests.
struct Pair {
    oracle: Oracle,
    manager: LockManager,
    requests: Vec<RequestId>,
}

impl Pair {
    fn new() -> Self {
        Self { oracle: Oracle::default(), manager: manager(), requests: Vec::new() }
    }

    fn number(&self, request: RequestId) -> usize {
        self.requests
            .iter()
            .position(|&other| other == request)
            .expect("the engine speaks of known requests")
    }

    /// Gives both the input; they must grant the same in the same order and hold the same
    /// afterwards.
    fn input(&mut self, input: Input, history: &[Input]) {
        let mut grants = Vec::new();
        match input {
            Input::Ask { scope, exclusive } => {
                // Each request has its own client: the rule does not depend on clients.
                let client = self.manager.add_client();
                let asked = self.manager.request(client, request_of(scope, exclusive));
                let (request, answer) = asked.expect("the client is new");
                self.requests.push(request);
                if let Answer::Granted(_) = answer {
                    grants.push(self.number(request));
                }
            }
            Input::Leave { place } => {
                let line = self.oracle.list[place];
                let request = self.requests[line.number];
                // Only the input that fits the state of the entry has an effect.
                assert_eq!(self.manager.release(request), line.granted, "{history:?}");
                assert_eq!(self.manager.abort(request), !line.granted, "{history:?}");
            }
        }
        self.manager.check_invariants();
        grants.extend(self.grants());
        assert_eq!(grants, self.oracle.input(input), "{history:?}");
        self.compare(history);
    }

    fn grants(&mut self) -> Vec<usize> {
        let mut grants = Vec::new();
        while let Some(event) = self.manager.poll_event() {
            let Event::Granted { request, .. } = event else { panic!("unexpected {event:?}") };
            grants.push(self.number(request));
        }
        grants
    }

    fn compare(&self, history: &[Input]) {
        let snapshot = self.manager.snapshot();
        let mut held: Vec<usize> =
            snapshot.held.iter().map(|info| self.number(info.request)).collect();
        // The list is in order of arrival; other tests compare the grant order.
        held.sort_unstable();
        let pending: Vec<usize> =
            snapshot.pending.iter().map(|info| self.number(info.request)).collect();
        assert_eq!(held, self.oracle.numbers(true), "{history:?}");
        assert_eq!(pending, self.oracle.numbers(false), "{history:?}");
    }
}

/// Plays every history of `length` inputs once.
fn every_history(
    length: usize,
    live: usize,
    history: &mut Vec<Input>,
    visit: &mut impl FnMut(&[Input]),
) {
    if history.len() == length {
        return visit(history);
    }
    for scope in 0..SCOPES.len() {
        for exclusive in [false, true] {
            history.push(Input::Ask { scope, exclusive });
            every_history(length, live + 1, history, visit);
            history.pop();
        }
    }
    for place in 0..live {
        history.push(Input::Leave { place });
        every_history(length, live - 1, history, visit);
        history.pop();
    }
}

#[test]
fn x20_every_short_history_agrees_with_oracle() {
    let mut histories = 0;
    every_history(5, 0, &mut Vec::new(), &mut |history| {
        histories += 1;
        let mut pair = Pair::new();
        for &input in history {
            pair.input(input, history);
        }
    });
    // Each step has 6 + live choices.
    assert_eq!(histories, 23_976);
}

#[test]
fn x20_every_four_requests_leaving_in_every_order_agree_with_oracle() {
    // Short histories have few deep queues. Here four requests stand before the first leaves.
    let choices = 2 * SCOPES.len();
    for asked in 0..choices.pow(4) {
        let choice = |at: u32| asked / choices.pow(at) % choices;
        let asks = [choice(0), choice(1), choice(2), choice(3)]
            .map(|choice| Input::Ask { scope: choice / 2, exclusive: choice % 2 == 1 });
        for order in 0..4 * 3 * 2 {
            let places = [order % 4, order / 4 % 3, order / 12, 0];
            let history = [asks, places.map(|place| Input::Leave { place })].concat();
            let mut pair = Pair::new();
            for &input in &history {
                pair.input(input, &history);
            }
            assert_eq!(pair.manager.name_count(), 0);
        }
    }
}

#[test]
fn x20_other_inputs_grant_nothing() {
    let mut manager = manager();
    let client = manager.add_client();
    let holder = manager.request(client, x("a")).unwrap().0;
    let waiting = manager.request(client, s("a")).unwrap().0;
    while manager.poll_event().is_some() {}
    // Queries and new clients grant nothing.
    manager.add_client();
    manager.query();
    manager.snapshot();
    manager.blockers(waiting);
    manager.deadlocks();
    assert!(manager.poll_event().is_none());
    assert_eq!(manager.state(waiting), Some(State::Pending));
    assert!(matches!(manager.state(holder), Some(State::Held(_))));
}
