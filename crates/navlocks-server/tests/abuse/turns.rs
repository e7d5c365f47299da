//! The messages that one input of a hub sends in one go, counted.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use navlocks_server::hub::{Frame, Hub, Outbox, Peer};
use navlocks_server::{DeadlockPolicy, Limits};
use navlocks_wire::{self as wire, ToClient, ToService};

/// More than the service sends in one go.
pub(crate) const MANY: u64 = 5_000;

/// The most messages that one input sends in one go.
pub(crate) const IN_ONE_GO: usize = 1_001;

pub(crate) struct Session {
    pub(crate) number: u32,
    pub(crate) connection: u64,
    secret: String,
    outbox: Outbox,
}

fn hub() -> Hub {
    hub_with(Limits::default(), DeadlockPolicy::Ignore)
}

pub(crate) fn hub_with(limits: Limits, deadlocks: DeadlockPolicy) -> Hub {
    Hub::without_store(limits, deadlocks).expect("a clock")
}

pub(crate) fn join(hub: &mut Hub) -> Session {
    say_hello(hub, r#"{"hello":{}}"#).0
}

/// Begins a connection. Returns its session, and the messages that come at once after the welcome.
pub(crate) fn say_hello(hub: &mut Hub, hello: &str) -> (Session, Vec<String>) {
    let outbox = Outbox::new(64 << 20);
    let ToService::Hello(hello) = read(hello) else { panic!("not hello") };
    let peer = Rc::new(Peer::remote("tenant", ""));
    let (number, connection) = hub.hello(&peer, &hello, &outbox, Instant::now()).expect("welcome");
    let mut frames: VecDeque<Frame> = VecDeque::new();
    outbox.take(&mut frames);
    let welcome = frames.pop_front().expect("a welcome").text();
    let ToClient::Welcome(welcome) = wire::read(&welcome).expect("a message") else {
        panic!("not a welcome: {welcome}");
    };
    assert!(frames.len() < IN_ONE_GO, "{} messages in one go", frames.len());
    let messages = frames.iter().map(Frame::text).collect();
    (Session { number, connection, secret: welcome.secret, outbox }, messages)
}

pub(crate) fn read(text: &str) -> ToService {
    wire::read(text).expect("a message")
}

impl Session {
    pub(crate) fn say(&self, hub: &mut Hub, text: &str) {
        hub.message(self.number, read(text), Instant::now()).expect("it is taken");
    }

    pub(crate) fn request_all(&self, hub: &mut Hub, mode: &str) {
        for id in 1..=MANY {
            self.say(hub, &format!(r#"{{"request":{{"id":{id},"names":["a"],"mode":"{mode}"}}}}"#));
        }
    }

    /// Goes on over another connection, and has named nothing yet.
    pub(crate) fn begin_resume(&self, hub: &mut Hub) -> Self {
        let Self { number, secret, .. } = self;
        let resume = format!(r#"{{"session":{number},"secret":"{secret}"}}"#);
        say_hello(hub, &format!(r#"{{"hello":{{"resume":{resume}}}}}"#)).0
    }

    /// Goes on over another connection with these clients and requests.
    pub(crate) fn resume(
        &self,
        hub: &mut Hub,
        clients: &[u64],
        alive: &[u64],
    ) -> (Self, Vec<String>) {
        let resumed = self.begin_resume(hub);
        for client in clients {
            resumed.say(hub, &format!(r#"{{"open":{{"client":{client}}}}}"#));
        }
        for id in alive {
            resumed.say(hub, &format!(r#"{{"request":{{"id":{id},"names":["a"]}}}}"#));
        }
        resumed.say(hub, r#""claimed""#);
        let messages = resumed.take();
        (resumed, messages)
    }

    /// Opens as many clients as there are requests, each of which requests its own name.
    fn request_by_many_clients(&self, hub: &mut Hub) {
        for id in 1..=MANY {
            self.say(hub, &format!(r#"{{"open":{{"client":{id}}}}}"#));
            self.say(
                hub,
                &format!(r#"{{"request":{{"id":{id},"client":{id},"names":["{id}"]}}}}"#),
            );
        }
    }

    /// Requests as many names as there are requests.
    fn request_many_names(&self, hub: &mut Hub) {
        for id in 1..=MANY {
            self.say(hub, &format!(r#"{{"request":{{"id":{id},"names":["{id}"]}}}}"#));
        }
    }

    /// Takes the messages that lie in the outbox.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut frames: VecDeque<Frame> = VecDeque::new();
        self.outbox.take(&mut frames);
        self.outbox.written_all();
        frames.iter().map(Frame::text).collect()
    }

    /// Takes all messages while the hub goes on, and checks that few come at a time.
    #[track_caller]
    pub(crate) fn take_in_turns(&self, hub: &mut Hub) -> Vec<String> {
        let mut all = self.take();
        assert!(all.len() <= IN_ONE_GO, "{} messages in one go", all.len());
        let mut left = true;
        while left {
            left = hub.go_on(Instant::now());
            let some = self.take();
            assert!(some.len() <= IN_ONE_GO, "{} messages in one go", some.len());
            all.extend(some);
        }
        hub.check_invariants();
        all
    }
}

/// The numbers of these messages, which are all of this kind.
pub(crate) fn numbers(messages: &[String], kind: &str) -> Vec<u64> {
    let number = |text: &String| {
        assert!(text.starts_with(&format!(r#"{{"{kind}""#)), "not {kind}: {text}");
        let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = digits.find(|c: char| !c.is_ascii_digit()).expect("an end");
        digits[..end].parse().expect("a number")
    };
    messages.iter().map(number).collect()
}

#[test]
fn grant_to_many_waiters_is_sent_in_turns() {
    let mut hub = hub();
    let (holder, waiter) = (join(&mut hub), join(&mut hub));
    holder.say(&mut hub, r#"{"request":{"id":1,"names":["a"]}}"#);
    waiter.request_all(&mut hub, "shared");
    assert_eq!(waiter.take(), [""; 0]);
    holder.say(&mut hub, r#"{"end":1}"#);
    let granted = waiter.take_in_turns(&mut hub);
    assert_eq!(numbers(&granted, "granted"), (1..=MANY).collect::<Vec<_>>());
}

#[test]
fn steal_from_many_holders_is_sent_in_turns() {
    let mut hub = hub();
    let (thief, holder) = (join(&mut hub), join(&mut hub));
    holder.request_all(&mut hub, "shared");
    holder.take();
    thief.say(&mut hub, r#"{"request":{"id":1,"names":["a"],"wait":"steal"}}"#);
    assert_eq!(thief.take(), [""; 0], "the thief comes after the losses");
    let lost = holder.take_in_turns(&mut hub);
    assert_eq!(numbers(&lost, "over"), (1..=MANY).collect::<Vec<_>>());
    assert_eq!(numbers(&thief.take(), "granted"), [1]);
}

#[test]
fn contention_of_many_holders_is_sent_in_turns() {
    let mut hub = hub();
    let (other, holder) = (join(&mut hub), join(&mut hub));
    holder.request_all(&mut hub, "shared");
    holder.take();
    (1..=MANY)
        .for_each(|id| holder.say(&mut hub, &format!(r#"{{"watch":{{"contention":{id}}}}}"#)));
    other.say(&mut hub, r#"{"request":{"id":1,"names":["a"]}}"#);
    let told = holder.take_in_turns(&mut hub);
    assert_eq!(numbers(&told, "event").len(), MANY as usize);
}

#[test]
fn end_of_a_session_with_many_heirs_is_sent_in_turns() {
    let mut hub = hub();
    let (holder, heir) = (join(&mut hub), join(&mut hub));
    holder.request_many_names(&mut hub);
    heir.request_many_names(&mut hub);
    assert_eq!(heir.take(), [""; 0]);
    hub.leave(holder.number, holder.connection, Instant::now());
    let granted = heir.take_in_turns(&mut hub);
    assert_eq!(numbers(&granted, "granted").len(), MANY as usize);
}

#[test]
fn end_of_a_session_with_many_clients_is_done_in_turns() {
    let mut hub = hub();
    let (holder, heir, subscriber) = (join(&mut hub), join(&mut hub), join(&mut hub));
    holder.request_by_many_clients(&mut hub);
    heir.request_many_names(&mut hub);
    assert_eq!(heir.take(), [""; 0]);
    subscriber.say(&mut hub, r#"{"watch":{"events":0}}"#);
    subscriber.take();
    hub.leave(holder.number, holder.connection, Instant::now());
    let mut all = Vec::new();
    let mut left = true;
    while left {
        // Each request that ends takes a grant, and two events for the subscriber.
        let (some, events) = (heir.take(), subscriber.take());
        assert!(some.len() <= IN_ONE_GO / 3 && events.len() <= IN_ONE_GO, "{}", events.len());
        all.extend(some);
        hub.check_invariants();
        left = hub.go_on(Instant::now());
    }
    all.extend(heir.take());
    assert!(numbers(&all, "granted").into_iter().eq(1..=MANY));
    assert!(!hub.go_on(Instant::now()));
}

#[test]
fn end_of_clients_with_many_heirs_each_is_done_in_turns() {
    let mut hub = hub();
    let (holder, heir) = (join(&mut hub), join(&mut hub));
    holder.request_by_many_clients(&mut hub);
    for id in 1..=MANY {
        let name = id % 5 + 1;
        let names = format!(r#"{{"request":{{"id":{id},"names":["{name}"],"mode":"shared"}}}}"#);
        heir.say(&mut hub, &names);
    }
    hub.leave(holder.number, holder.connection, Instant::now());
    let granted = heir.take_in_turns(&mut hub);
    assert_eq!(numbers(&granted, "granted").len(), MANY as usize);
}

#[test]
fn resume_that_gives_up_many_requests_is_done_in_turns() {
    let mut hub = hub();
    let (holder, heir) = (join(&mut hub), join(&mut hub));
    holder.request_many_names(&mut hub);
    heir.request_many_names(&mut hub);
    let kept = [1, MANY];
    let (holder, _) = holder.resume(&mut hub, &[0], &kept);
    let mut granted = numbers(&heir.take_in_turns(&mut hub), "granted");
    granted.sort_unstable();
    assert!(granted.into_iter().eq(2..MANY));
    holder.say(&mut hub, r#"{"end":1}"#);
    assert_eq!(numbers(&heir.take(), "granted"), [1]);
}

#[test]
fn resume_without_many_clients_is_done_in_turns() {
    let mut hub = hub();
    let (holder, heir) = (join(&mut hub), join(&mut hub));
    holder.request_by_many_clients(&mut hub);
    heir.request_many_names(&mut hub);
    let (holder, _) = holder.resume(&mut hub, &[0, MANY], &[MANY]);
    let mut granted = numbers(&heir.take_in_turns(&mut hub), "granted");
    granted.sort_unstable();
    assert!(granted.into_iter().eq(1..MANY));
    holder.say(&mut hub, &format!(r#"{{"close":{MANY}}}"#));
    assert_eq!(numbers(&heir.take(), "granted"), [MANY]);
}

#[test]
fn resume_after_many_losses_sends_each() {
    let mut hub = hub();
    let (thief, holder) = (join(&mut hub), join(&mut hub));
    holder.request_all(&mut hub, "shared");
    thief.say(&mut hub, r#"{"request":{"id":1,"names":["a"],"wait":"steal"}}"#);
    while hub.go_on(Instant::now()) {}
    let alive: Vec<u64> = (1..=MANY).collect();
    let (_, lost) = holder.resume(&mut hub, &[0], &alive);
    assert!(numbers(&lost, "over") == alive);
}

#[test]
fn session_that_ends_while_its_tenant_is_behind_ends_in_its_turn() {
    let mut hub = hub();
    let (holder, other, heir) = (join(&mut hub), join(&mut hub), join(&mut hub));
    holder.request_many_names(&mut hub);
    other.say(&mut hub, r#"{"request":{"id":1,"names":["other"]}}"#);
    heir.say(&mut hub, r#"{"request":{"id":1,"names":["other"]}}"#);
    holder.resume(&mut hub, &[0], &[]);
    hub.leave(other.number, other.connection, Instant::now());
    assert_eq!(numbers(&heir.take_in_turns(&mut hub), "granted"), [1]);
    // A session that ends while it gives up requests leaves nothing behind.
    hub.leave(heir.number, heir.connection, Instant::now());
    while hub.go_on(Instant::now()) {}
    hub.check_invariants();
}

#[test]
fn input_before_the_rest_is_sent_finds_all_of_it_sent() {
    let mut hub = hub();
    let (holder, waiter) = (join(&mut hub), join(&mut hub));
    holder.say(&mut hub, r#"{"request":{"id":1,"names":["a"]}}"#);
    waiter.request_all(&mut hub, "shared");
    holder.say(&mut hub, r#"{"end":1}"#);
    waiter.say(&mut hub, &format!(r#"{{"end":{MANY}}}"#));
    assert_eq!(numbers(&waiter.take(), "granted").len(), MANY as usize);
    assert!(!hub.go_on(Instant::now()));
    hub.leave(waiter.number, waiter.connection, Instant::now());
    hub.leave(holder.number, holder.connection, Instant::now());
}

#[test]
fn slow_subscribers_take_a_bounded_part_of_a_large_step() {
    let mut hub = hub();
    let (holder, waiter) = (join(&mut hub), join(&mut hub));
    holder.say(&mut hub, r#"{"request":{"id":1,"names":["a"]}}"#);
    waiter.request_all(&mut hub, "shared");
    let small = Outbox::new(10_000);
    let ToService::Hello(hello) = read(r#"{"hello":{}}"#) else { panic!("not hello") };
    let peer = Rc::new(Peer::remote("tenant", ""));
    let (slow, _) = hub.hello(&peer, &hello, &small, Instant::now()).expect("welcome");
    hub.message(slow, read(r#"{"watch":{"events":0}}"#), Instant::now()).expect("it is taken");
    holder.say(&mut hub, r#"{"end":1}"#);
    let granted = waiter.take_in_turns(&mut hub);
    assert_eq!(granted.len(), MANY as usize);
    let mut frames: VecDeque<Frame> = VecDeque::new();
    small.take(&mut frames);
    let bytes: usize = frames.iter().map(|frame| frame.text().len()).sum();
    assert!(bytes < 20_000, "{bytes} bytes lie unread");
    assert!(small.ending().is_some(), "the slow reader ends");
}

#[test]
fn request_behind_too_many_waits_without_a_search_for_deadlocks() {
    for (waiters, is_found) in [(10, true), (200, false)] {
        let limits = Limits::default().with(|it| it.deadlock_wait_entries_max = 100);
        let mut hub = hub_with(limits, DeadlockPolicy::Refuse);
        let (first, second, others) = (join(&mut hub), join(&mut hub), join(&mut hub));
        first.say(&mut hub, r#"{"request":{"id":1,"names":["a"]}}"#);
        second.say(&mut hub, r#"{"request":{"id":1,"names":["b"]}}"#);
        for id in 1..=waiters {
            others.say(&mut hub, &format!(r#"{{"request":{{"id":{id},"names":["a"]}}}}"#));
        }
        first.say(&mut hub, r#"{"request":{"id":2,"names":["b"],"within":1}}"#);
        second.take();
        second.say(&mut hub, r#"{"request":{"id":2,"names":["a"],"within":1}}"#);
        let refused = second.take().iter().any(|text| text.contains(r#""why":{"refused""#));
        assert_eq!(refused, is_found, "behind {waiters} waiters");
    }
}

#[test]
fn question_about_a_place_behind_too_many_is_refused() {
    let limits = Limits::default().with(|it| it.blocker_entries_max = 100);
    let mut hub = hub_with(limits, DeadlockPolicy::Ignore);
    let (others, last) = (join(&mut hub), join(&mut hub));
    let place = |hub: &mut Hub| {
        last.say(hub, r#"{"ask":{"id":1,"question":"place"}}"#);
        last.take().pop().expect("an answer")
    };
    for id in 1..=100 {
        others.say(&mut hub, &format!(r#"{{"request":{{"id":{id},"names":["a"]}}}}"#));
    }
    last.say(&mut hub, r#"{"request":{"id":1,"names":["a"]}}"#);
    assert!(place(&mut hub).contains(r#""before":99"#));
    last.say(&mut hub, r#"{"end":1}"#);
    others.say(&mut hub, r#"{"request":{"id":101,"names":["a"]}}"#);
    last.say(&mut hub, r#"{"request":{"id":2,"names":["a"]}}"#);
    let answer = place(&mut hub);
    assert!(answer.contains("more than 100 entries stand before the request"), "{answer}");
}
