//! The hosts of the embedding kit: partitions, request numbers of the caller, groups and limits.

use navlocks_core::kit::{
    About, Address, Host, HostError, HostSink, LimitExceeded, Limits, Member, Memory, Notice,
    SpaceError,
};
use navlocks_core::{
    Answer, DeadlockPolicy, DowngradeError, FencingToken, Mode, Name, Request, SuspendPolicy, Wait,
};

use crate::kit::{KEY, words};

/// Records the notices of a host.
#[derive(Default)]
struct Messages {
    now: u64,
    notified: Vec<(Member, u64, String)>,
    published: Vec<String>,
    evicted: Vec<Member>,
    /// The most notices that it takes at a time.
    room: Option<usize>,
}

impl Messages {
    fn take(&mut self) -> Vec<(Member, u64, String)> {
        std::mem::take(&mut self.notified)
    }
}

impl HostSink<u64, &'static str> for Messages {
    fn now(&self) -> u64 {
        self.now
    }

    fn notify(&mut self, to: Address, notice: &Notice<'_, u64>) {
        self.notified.push((to.member, to.number, words(notice)));
    }

    fn publish(&mut self, of: Address, about: &About<&'static str>, notice: &Notice<'_, u64>) {
        let tag = about.tag.unwrap_or("-");
        self.published.push(format!("{} {} {tag}: {}", of.number, about.scope, words(notice)));
    }

    fn has_enough(&self) -> bool {
        self.room.is_some_and(|room| self.notified.len() >= room)
    }

    fn evicted(&mut self, member: Member) {
        self.evicted.push(member);
    }
}

type TestHost = Host<&'static str, u64, &'static str>;

fn host(limits: Limits) -> TestHost {
    Host::new(KEY, limits, DeadlockPolicy::Ignore)
}

/// Requests a lock and returns the answer. Panics when the host refuses.
fn request(
    host: &mut TestHost,
    member: Member,
    number: u64,
    request: &Request,
    messages: &mut Messages,
) -> Answer {
    host.request(member, number, request, None, messages).expect("a request").1
}

#[test]
fn number_of_live_request_is_refused_and_free_again_afterwards() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let group = host.add_group();
    let member = host.open(group, "p").unwrap();
    let lock = Request::exclusive("a");
    let trying = lock.clone().wait(Wait::IfAvailable);
    let mut request = |host: &mut TestHost, number, request: &Request| {
        host.request(member, number, request, None, &mut messages).map(|(_, answer)| answer)
    };
    assert!(matches!(request(&mut host, 1, &lock), Ok(Answer::Granted(_))));
    assert_eq!(request(&mut host, 1, &lock), Err(HostError::NumberInUse(1)));
    assert_eq!(request(&mut host, 2, &trying), Ok(Answer::Unavailable));
    assert_eq!(request(&mut host, 2, &lock), Ok(Answer::Pending));
    let steal = lock.clone().wait(Wait::Steal);
    assert!(matches!(request(&mut host, 3, &steal), Ok(Answer::Granted(_))));
    // Request 1 was lost, so its number is free.
    assert_eq!(request(&mut host, 1, &lock), Ok(Answer::Pending));
    assert_eq!(host.memory().requests, 3);
}

#[test]
fn client_cannot_release_or_abort_requests_of_another() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let group = host.add_group();
    let (one, two) = (host.open(group, "p").unwrap(), host.open(group, "p").unwrap());
    let lock = Request::exclusive("a");
    request(&mut host, one, 1, &lock, &mut messages);
    request(&mut host, one, 2, &lock, &mut messages);
    assert!(!host.release(two, 1, &mut messages));
    assert!(!host.abort(two, 2, &mut messages) && !host.cancel(two, 2, &mut messages));
    assert!(!host.abort(one, 1, &mut messages), "a held request is not aborted");
    assert!(!host.release(one, 2, &mut messages), "a pending request is not released");
    assert_eq!(host.query(two, &mut messages).unwrap().held.len(), 1);
    assert!(host.release(one, 1, &mut messages));
    assert!(host.release(one, 2, &mut messages));
    assert_eq!(host.memory().requests, 0);
}

#[test]
fn group_ends_with_all_its_clients_and_no_others() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let (page, tab) = (host.add_group(), host.add_group());
    let (window, worker) = (host.open(page, "p").unwrap(), host.open(page, "p").unwrap());
    let other = host.open(tab, "p").unwrap();
    let elsewhere = host.open(tab, "q").unwrap();
    for (member, name) in [(window, "a"), (worker, "b"), (elsewhere, "a")] {
        request(&mut host, member, 1, &Request::exclusive(name), &mut messages);
    }
    let both = Request::exclusive(["a", "b"]);
    messages.now = 3;
    request(&mut host, other, 7, &both, &mut messages);
    messages.take();
    assert!(host.end_group(page, &mut messages));
    let expected = [
        (window, 1, "ended, granted at 0".to_owned()),
        (worker, 1, "ended, granted at 0".to_owned()),
        (other, 7, "granted 3, requested at 3".to_owned()),
    ];
    assert_eq!(messages.take(), expected);
    assert!(!host.end_group(page, &mut messages));
    assert_eq!(host.open(page, "p"), Err(HostError::UnknownGroup));
    let refused = host.request(window, 2, &both, None, &mut messages);
    assert_eq!(refused, Err(HostError::UnknownMember));
    assert!(!host.close(window, &mut messages));
    assert_eq!(host.query(elsewhere, &mut messages).unwrap().held.len(), 1);
    assert_eq!(host.query(window, &mut messages), None);
}

#[test]
fn group_that_ends_grants_nothing_to_its_own_members() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let (page, tab) = (host.add_group(), host.add_group());
    let (window, worker) = (host.open(page, "p").unwrap(), host.open(page, "p").unwrap());
    let other = host.open(tab, "p").unwrap();
    let lock = Request::exclusive("a");
    for member in [window, worker, other] {
        request(&mut host, member, 1, &lock, &mut messages);
    }
    messages.take();
    assert!(host.end_group(page, &mut messages));
    let expected = [
        (window, 1, "ended, granted at 0".to_owned()),
        (worker, 1, "ended, pending".to_owned()),
        (other, 1, "granted 2, requested at 0".to_owned()),
    ];
    assert_eq!(messages.take(), expected);
}

#[test]
fn tokens_grow_after_the_last_client_of_a_partition_was_closed() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let group = host.add_group();
    let lock = Request::exclusive("a");
    let mut last = 0;
    for partition in ["p", "p", "q", "p"] {
        let member = host.open(group, partition).unwrap();
        for number in 0..3 {
            let answer = request(&mut host, member, number, &lock, &mut messages);
            let Answer::Granted(token) = answer else { panic!("{answer:?}") };
            assert!(token.get() > last, "{token} after {last}");
            last = token.get();
            assert!(host.release(member, number, &mut messages));
        }
        assert!(host.close(member, &mut messages));
    }
    host.advance_token(FencingToken::new(1_000)).unwrap();
    let member = host.open(group, "p").unwrap();
    let answer = request(&mut host, member, 1, &lock, &mut messages);
    assert_eq!(answer, Answer::Granted(FencingToken::new(1_000)));
    assert!(host.advance_token(FencingToken::new(u64::MAX)).is_err());
}

#[test]
fn query_names_members_numbers_and_tags() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let group = host.add_group();
    let (one, two) = (host.open(group, "p").unwrap(), host.open(group, "p").unwrap());
    messages.now = 4;
    let made = host.request(one, 10, &Request::exclusive("a"), Some("first"), &mut messages);
    let (id, _) = made.unwrap();
    messages.now = 6;
    request(&mut host, two, 20, &Request::shared(["a", "b"]), &mut messages);
    let snapshot = host.query(two, &mut messages).unwrap();
    let [held] = &snapshot.held[..] else { panic!("{snapshot:?}") };
    assert_eq!(held.address, Address { member: one, number: 10, request: id });
    assert_eq!((held.tag, held.since, held.mode), (Some("first"), 4, Mode::Exclusive));
    assert_eq!(held.token, Some(FencingToken::new(1)));
    let [pending] = &snapshot.pending[..] else { panic!("{snapshot:?}") };
    assert_eq!((pending.address.member, pending.address.number), (two, 20));
    assert_eq!((pending.tag, pending.since, pending.token), (None, 6, None));
    assert_eq!(pending.scope.names(), [Name::from("a"), Name::from("b")]);
    assert_eq!(host.address(two, id), Some(held.address));
    let client = host.manager(two).unwrap().info(id).unwrap().client;
    assert_eq!(host.member(two, client), Some(one));
    assert_eq!(Member::from_bits(one.to_bits()), Some(one));
}

#[test]
fn cancel_ends_a_request_that_is_pending_or_granted() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let group = host.add_group();
    let member = host.open(group, "p").unwrap();
    let lock = Request::exclusive("a");
    for number in [1, 2, 3] {
        request(&mut host, member, number, &lock, &mut messages);
    }
    assert!(host.cancel(member, 2, &mut messages), "it was pending");
    messages.take();
    assert!(host.cancel(member, 1, &mut messages), "it was held");
    let expected = [
        (member, 1, "released, granted at 0".to_owned()),
        (member, 3, "granted 2, requested at 0".to_owned()),
    ];
    assert_eq!(messages.take(), expected);
    assert!(!host.cancel(member, 1, &mut messages), "it is over");
}

#[test]
fn suspended_client_is_evicted_by_name_and_learns_it_when_it_is_resumed() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let group = host.add_group();
    let (frozen, other) = (host.open(group, "p").unwrap(), host.open(group, "p").unwrap());
    let lock = Request::exclusive("a");
    request(&mut host, frozen, 1, &lock, &mut messages);
    messages.take();
    assert!(host.suspend(frozen, SuspendPolicy::EvictOnContention, &mut messages));
    assert!(!host.suspend(frozen, SuspendPolicy::EvictOnContention, &mut messages));
    let answer = request(&mut host, other, 1, &lock, &mut messages);
    assert!(matches!(answer, Answer::Granted(_)));
    assert_eq!(messages.evicted, [frozen]);
    assert_eq!(messages.take(), [(other, 1, "granted 2, requested at 0".to_owned())]);
    assert!(host.resume(frozen, &mut messages));
    let [(member, 1, text)] = &messages.take()[..] else { panic!("one notice") };
    assert!(*member == frozen && text.starts_with("lost, evicted"), "{text}");
    assert_eq!(request(&mut host, frozen, 1, &lock, &mut messages), Answer::Pending);
}

#[test]
fn holder_downgrades_watches_and_loses_its_lock_by_number() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let group = host.add_group();
    let (one, two) = (host.open(group, "p").unwrap(), host.open(group, "p").unwrap());
    request(&mut host, one, 1, &Request::exclusive("a"), &mut messages);
    host.watch_contention(one, 1, &mut messages);
    host.watch_contention(two, 1, &mut messages);
    request(&mut host, two, 1, &Request::shared("a"), &mut messages);
    let told = messages.take();
    assert_eq!(told[1..], [(one, 1, "contended".to_owned())]);
    let refused = host.downgrade(two, 1, Mode::Shared, &mut messages);
    assert_eq!(refused, Err(DowngradeError::NotHeld));
    host.downgrade(one, 1, Mode::Shared, &mut messages).unwrap();
    let expected = [
        (one, 1, "downgraded to shared".to_owned()),
        (two, 1, "granted 2, requested at 0".to_owned()),
    ];
    assert_eq!(messages.take(), expected);
    assert_eq!(host.force_release(one, &Name::from("a"), &mut messages), 2);
    let told = messages.take();
    let lost = "lost, force-released, granted at 0".to_owned();
    assert_eq!(told, [(one, 1, lost.clone()), (two, 1, lost)]);
}

#[test]
fn subscribers_receive_events_of_their_partition_with_tags() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let group = host.add_group();
    let (here, there) = (host.open(group, "p").unwrap(), host.open(group, "q").unwrap());
    host.describe(here);
    let lock = Request::exclusive("a");
    host.request(here, 5, &lock, Some("tag"), &mut messages).unwrap();
    host.request(there, 6, &lock, None, &mut messages).unwrap();
    host.stop_describing(here);
    assert!(host.release(here, 5, &mut messages));
    assert_eq!(messages.published, ["5 a tag: requested", "5 a tag: granted 1, requested at 0"]);
}

#[test]
fn deadlock_policy_of_a_host_refuses_a_request_that_closes_a_cycle() {
    let mut host: TestHost = Host::new(KEY, Limits::default(), DeadlockPolicy::Refuse);
    let mut messages = Messages::default();
    let group = host.add_group();
    let (one, two) = (host.open(group, "p").unwrap(), host.open(group, "p").unwrap());
    let (a, b) = (Request::exclusive("a"), Request::exclusive("b"));
    request(&mut host, one, 1, &a, &mut messages);
    request(&mut host, two, 1, &b, &mut messages);
    let waits = host.request_within(Some(1), one, 2, &b, None, &mut messages);
    assert!(waits.is_ok(), "{waits:?}");
    let refused = host.request_within(Some(1), two, 2, &a, None, &mut messages);
    assert!(matches!(refused, Err(HostError::Refused(SpaceError::Deadlock(_)))), "{refused:?}");
    assert_eq!(host.memory().requests, 3, "nothing of the refused request is left");
    // A number of another client names nothing.
    let own = host.request_within(Some(9), two, 3, &a, None, &mut messages);
    assert!(own.is_ok(), "{own:?}");
}

#[test]
fn sink_that_has_enough_gets_the_rest_later() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let group = host.add_group();
    let member = host.open(group, "p").unwrap();
    request(&mut host, member, 0, &Request::exclusive("a"), &mut messages);
    for number in 1..=10 {
        request(&mut host, member, number, &Request::shared("a"), &mut messages);
    }
    messages.take();
    messages.room = Some(4);
    assert!(host.release(member, 0, &mut messages));
    assert_eq!(messages.take().len(), 4);
    assert!(host.has_effects());
    host.go_on(&mut messages);
    assert_eq!(messages.take().len(), 4);
    // The next input passes on the rest, however little room the sink has.
    messages.room = Some(0);
    assert!(host.release(member, 1, &mut messages));
    let numbers: Vec<u64> = messages.take().into_iter().map(|(_, number, _)| number).collect();
    assert_eq!(numbers, [8, 9, 10, 1]);
    assert!(!host.has_effects());
}

#[test]
fn limits_are_refused_by_name() {
    let mut limits = Limits::default();
    limits.partitions_max = 2;
    limits.clients_per_group_max = 3;
    limits.requests_per_client_max = 2;
    limits.names_per_request_max = 2;
    limits.name_bytes_max = 4;
    let (mut host, mut messages) = (host(limits), Messages::default());
    let exceeded = |limit, max| Some(HostError::Limit(LimitExceeded { limit, max }));
    let (group, spare) = (host.add_group(), host.add_group());
    let member = host.open(group, "p").unwrap();
    host.open(group, "q").unwrap();
    assert_eq!(host.open(spare, "r").err(), exceeded("partitions_max", 2));
    host.open(group, "q").unwrap();
    assert_eq!(host.open(group, "p").err(), exceeded("clients_per_group_max", 3));
    let mut request = |host: &mut TestHost, number, request: Request| {
        host.request(member, number, &request, None, &mut messages).err()
    };
    let three = Request::exclusive(["a", "b", "c"]);
    assert_eq!(request(&mut host, 1, three), exceeded("names_per_request_max", 2));
    let long = Request::exclusive(["a", "abcde"]);
    assert_eq!(request(&mut host, 1, long), exceeded("name_bytes_max", 4));
    assert_eq!(request(&mut host, 1, Request::exclusive(["a", "abcd"])), None);
    assert_eq!(request(&mut host, 2, Request::exclusive("b")), None);
    let third = request(&mut host, 3, Request::exclusive("b"));
    assert_eq!(third, exceeded("requests_per_client_max", 2));
    assert!(host.release(member, 1, &mut messages));
    let third = host.request(member, 3, &Request::exclusive("b"), None, &mut messages);
    assert_eq!(third.unwrap().1, Answer::Pending, "a released request counts no more");
}

#[test]
fn idle_host_uses_no_memory() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let group = host.add_group();
    for partition in ["p", "q"] {
        let member = host.open(group, partition).unwrap();
        for number in 0..100 {
            let request = Request::shared(format!("name {number}"));
            host.request(member, number, &request, Some("tag"), &mut messages).unwrap();
        }
    }
    let memory = host.memory();
    assert_eq!((memory.partitions, memory.clients, memory.requests), (2, 2, 200));
    assert!(memory.bytes > 200);
    assert!(host.end_group(group, &mut messages));
    assert_eq!(host.memory(), Memory::default());
}
