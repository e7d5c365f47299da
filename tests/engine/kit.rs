//! The spaces of the embedding kit: they notify in engine order, and keep nothing of finished
//! requests.

mod host;
mod capi;
mod holds;
mod memory;
mod recorder;

use navlocks_core::kit::{Notes, Notice, Sink, Space, SpaceError};
use navlocks_core::{
    Answer, ClientId, DeadlockPolicy, HashKey, LockManager, Name, Request, RequestError, RequestId,
    Scope, State, SuspendPolicy, Wait,
};
use recorder::{Labels, Record};

pub(crate) const KEY: HashKey = HashKey::from_bytes([7; 16]);

pub(crate) fn words(notice: &Notice<'_, u64>) -> String {
    match notice {
        Notice::Requested => "requested".into(),
        Notice::Granted { token, since } => format!("granted {token}, requested at {since}"),
        Notice::Unavailable => "unavailable".into(),
        Notice::Released { since } => format!("released, granted at {since}"),
        Notice::Downgraded(mode) => format!("downgraded to {mode}"),
        Notice::Withdrawn => "withdrawn".into(),
        Notice::Aborted(cause) => format!("aborted, {cause}"),
        Notice::Lost { cause, since } => format!("lost, {cause}, granted at {since}"),
        Notice::ClientEnded { held_since: Some(since) } => format!("ended, granted at {since}"),
        Notice::ClientEnded { held_since: None } => "ended, pending".into(),
        Notice::Contended => "contended".into(),
        Notice::Deadlock(deadlock) => format!("deadlock of {}", deadlock.clients.len()),
    }
}

fn space(deadlocks: DeadlockPolicy) -> Space<Labels> {
    Space::new(LockManager::new(KEY), deadlocks)
}

/// Requests a lock under a label. Panics when the space refuses.
fn request(
    space: &mut Space<Labels>,
    client: ClientId,
    label: &'static str,
    request: &Request,
    record: &mut Record,
) -> RequestId {
    space.request(client, request, (label, None), record).expect("not refused").0
}

#[test]
fn own_grant_stands_after_losses_and_before_later_grants() {
    let (mut space, mut record) = (space(DeadlockPolicy::Ignore), Record::default());
    let client = space.add_client();
    request(&mut space, client, "holder", &Request::exclusive(["a", "b"]), &mut record);
    request(&mut space, client, "waiter", &Request::exclusive("b"), &mut record);
    record.now = 5;
    let steal = Request::exclusive("a").wait(Wait::Steal);
    request(&mut space, client, "thief", &steal, &mut record);
    assert_eq!(
        record.take(),
        [
            "holder: granted 1, requested at 0",
            "holder: lost, stolen by r3, granted at 0",
            "thief: granted 2, requested at 5",
            "waiter: granted 3, requested at 0",
        ]
    );
}

/// A sink with capacity for a few notices.
#[derive(Default)]
struct Few {
    record: Record,
    room: usize,
}

impl Sink<Labels> for Few {
    fn now(&self) -> u64 {
        self.record.now
    }

    fn notify(&mut self, id: RequestId, notes: &mut Notes<Labels>, notice: &Notice<'_, u64>) {
        self.room = self.room.saturating_sub(1);
        self.record.notify(id, notes, notice);
    }

    fn has_enough(&self) -> bool {
        self.room == 0
    }
}

#[test]
fn effects_beyond_the_capacity_of_a_sink_wait_in_order() {
    const LABELS: [&str; 5] = ["1", "2", "3", "4", "5"];
    let prepared = || {
        let (mut space, mut record) = (space(DeadlockPolicy::Ignore), Record::default());
        let client = space.add_client();
        for label in LABELS {
            let held = request(&mut space, client, label, &Request::shared("a"), &mut record);
            space.watch_contention(held, &mut record);
        }
        (space, client)
    };
    let steps: [fn(&mut Space<Labels>, ClientId, &mut Few); 3] = [
        |space, client, sink| {
            let exclusive = Request::exclusive("a");
            space.request(client, &exclusive, ("last", None), sink).expect("it waits");
        },
        |space, client, sink| {
            let steal = Request::exclusive("a").wait(Wait::Steal);
            space.request(client, &steal, ("thief", None), sink).expect("it is granted");
        },
        |space, _, sink| {
            space.force_release(&"a".into(), sink);
        },
    ];
    for step in steps {
        let (mut space, client) = prepared();
        let mut all = Few { room: usize::MAX, ..Few::default() };
        step(&mut space, client, &mut all);
        assert!(!space.has_effects() && all.record.notified.len() >= LABELS.len());

        let (mut space, client) = prepared();
        let mut few = Few { room: 2, ..Few::default() };
        step(&mut space, client, &mut few);
        assert_eq!(few.record.notified.len(), 2);
        let mut turns = 0;
        while space.has_effects() {
            few.room = 2;
            space.go_on(&mut few);
            turns += 1;
        }
        assert!(turns >= 2);
        assert_eq!(few.record.notified, all.record.notified);
    }
}

#[test]
fn notices_have_the_time_of_request_and_grant() {
    let (mut space, mut record) = (space(DeadlockPolicy::Ignore), Record::default());
    let client = space.add_client();
    let first = request(&mut space, client, "first", &Request::exclusive("a"), &mut record);
    record.now = 3;
    let second = request(&mut space, client, "second", &Request::exclusive("a"), &mut record);
    assert_eq!(space.notes().since(second), 3);
    record.now = 8;
    assert!(space.release(first, &mut record));
    assert_eq!(space.notes().since(second), 8);
    record.now = 9;
    assert!(space.release(second, &mut record));
    assert!(!space.release(second, &mut record));
    assert_eq!(
        record.take(),
        [
            "first: granted 1, requested at 0",
            "first: released, granted at 0",
            "second: granted 2, requested at 3",
            "second: released, granted at 8",
        ]
    );
}

#[test]
fn holder_is_notified_of_contention_once_for_each_watch() {
    let (mut space, mut record) = (space(DeadlockPolicy::Ignore), Record::default());
    let client = space.add_client();
    let lock = request(&mut space, client, "holder", &Request::exclusive(["a", "b"]), &mut record);
    record.take();
    space.watch_contention(lock, &mut record);
    request(&mut space, client, "elsewhere", &Request::exclusive("c"), &mut record);
    record.take();
    request(&mut space, client, "waiter", &Request::exclusive(["a", "b"]), &mut record);
    assert_eq!(record.take(), ["holder: contended"]);
    request(&mut space, client, "waiter", &Request::exclusive("b"), &mut record);
    assert!(record.take().is_empty());
    // A watch of a contended lock fires at once.
    space.watch_contention(lock, &mut record);
    assert_eq!(record.take(), ["holder: contended"]);
    assert!(!space.is_idle());
}

#[test]
fn unwatched_holder_is_not_notified_of_contention() {
    let (mut space, mut record) = (space(DeadlockPolicy::Ignore), Record::default());
    let client = space.add_client();
    let lock = request(&mut space, client, "holder", &Request::exclusive("a"), &mut record);
    space.watch_contention(lock, &mut record);
    space.unwatch_contention(lock);
    record.take();
    let waiter = request(&mut space, client, "waiter", &Request::exclusive("a"), &mut record);
    assert!(record.take().is_empty());
    assert!(space.abort(waiter, &mut record));
    space.watch_contention(lock, &mut record);
    assert!(space.release(lock, &mut record));
    assert!(space.is_idle(), "the watch of a released lock is left");
}

/// Makes two clients that each hold one name and then request the other's.
fn deadlocked(policy: DeadlockPolicy) -> (Space<Labels>, Record, Result<Answer, SpaceError>) {
    let (mut space, mut record) = (space(policy), Record::default());
    let (one, two) = (space.add_client(), space.add_client());
    let (a, b) = (Request::exclusive("a"), Request::exclusive("b"));
    let outer = request(&mut space, one, "one a", &a, &mut record);
    let other = request(&mut space, two, "two b", &b, &mut record);
    let made = space.request_within(Some(outer), one, &b, ("one b", None), &mut record);
    assert!(made.is_ok(), "it closes no cycle");
    record.take();
    space.describe();
    let note = ("two a", Some("tag"));
    let made = space.request_within(Some(other), two, &a, note, &mut record);
    (space, record, made.map(|(_, answer)| answer))
}

#[test]
fn b04_request_that_waits_for_its_own_outer_lock_is_refused_under_every_policy() {
    for policy in [DeadlockPolicy::Ignore, DeadlockPolicy::Report, DeadlockPolicy::Refuse] {
        let (mut space, mut record) = (space(policy), Record::default());
        let client = space.add_client();
        let (a, b) = (Request::exclusive("a"), Request::exclusive("b"));
        let outer = request(&mut space, client, "outer", &a, &mut record);
        let between = space.request_within(Some(outer), client, &b, ("", None), &mut record);
        let between = Some(between.expect("it waits for nothing").0);
        let made = space.request_within(between, client, &a, ("inner", None), &mut record);
        let Err(SpaceError::Deadlock(deadlock)) = made else { panic!("not refused: {made:?}") };
        assert_eq!((deadlock.outer, deadlock.requests.len()), (Some(outer), 3));
        assert_eq!((space.manager().held_count(), space.manager().pending_count()), (2, 0));
        // One that does not wait is unavailable, as by the standard.
        let tried = a.clone().wait(Wait::IfAvailable);
        let made = space.request_within(between, client, &tried, ("tried", None), &mut record);
        assert_eq!(made.expect("it is answered").1, Answer::Unavailable);
    }
}

#[test]
fn b02_request_of_the_same_client_within_no_lock_waits_under_the_refusing_policy() {
    let (mut space, mut record) = (space(DeadlockPolicy::Refuse), Record::default());
    let client = space.add_client();
    let a = Request::exclusive("a");
    let held = request(&mut space, client, "first handler", &a, &mut record);
    let second = request(&mut space, client, "second handler", &a, &mut record);
    assert_eq!(space.manager().state(second), Some(State::Pending));
    assert!(space.release(held, &mut record));
    // A lock that is over is no outer one.
    let made = space.request_within(Some(held), client, &a, ("third", None), &mut record);
    assert_eq!(made.expect("it waits").1, Answer::Pending);
}

#[test]
fn refused_deadlock_leaves_nothing_of_request() {
    let (mut space, mut record, made) = deadlocked(DeadlockPolicy::Refuse);
    let Err(SpaceError::Deadlock(deadlock)) = made else { panic!("not refused: {made:?}") };
    assert_eq!(deadlock.clients.len(), 2);
    assert_eq!(record.take(), ["two a: deadlock of 2", "two a: withdrawn"]);
    assert_eq!(
        record.published,
        [
            "c2 exclusive a tag: requested",
            "c2 exclusive a tag: deadlock of 2",
            "c2 exclusive a tag: withdrawn",
        ]
    );
    let manager = space.manager();
    assert_eq!((manager.held_count(), manager.pending_count(), space.tag_count()), (2, 1, 0));
    assert!(manager.deadlocks().is_empty());
    let two = manager.snapshot().held[1].client;
    assert!(space.end_client(two, &mut record));
    assert_eq!(record.take(), ["two b: ended, granted at 0", "one b: granted 3, requested at 0"]);
}

#[test]
fn reported_deadlock_keeps_request() {
    let (space, mut record, made) = deadlocked(DeadlockPolicy::Report);
    assert_eq!(made, Ok(Answer::Pending));
    assert_eq!(record.take(), ["two a: deadlock of 2"]);
    assert_eq!(space.manager().pending_count(), 2);
}

#[test]
fn ignored_deadlock_is_not_searched() {
    let (_, mut record, made) = deadlocked(DeadlockPolicy::Ignore);
    assert_eq!((made, record.take()), (Ok(Answer::Pending), vec![]));
}

#[test]
fn subscribers_receive_every_notice_between_describe_and_stop() {
    let (mut space, mut record) = (space(DeadlockPolicy::Ignore), Record::default());
    let client = space.add_client();
    let held = Request::shared("a");
    let (earlier, _) = space.request(client, &held, ("", Some("old")), &mut record).unwrap();
    assert!(record.published.is_empty());
    space.describe();
    space.describe();
    let waiter = request(&mut space, client, "", &Request::exclusive("a"), &mut record);
    let trying = Request::exclusive("a").wait(Wait::IfAvailable);
    request(&mut space, client, "", &trying, &mut record);
    assert!(space.release(earlier, &mut record));
    assert_eq!(space.force_release(&Name::from("a"), &mut record), 1);
    assert!(!space.release(waiter, &mut record));
    assert_eq!(
        record.published,
        [
            "c1 exclusive a -: requested",
            "c1 exclusive a -: requested",
            "c1 exclusive a -: unavailable",
            "c1 shared a old: released, granted at 0",
            "c1 exclusive a -: granted 2, requested at 0",
            "c1 exclusive a -: lost, force-released, granted at 0",
        ]
    );
    assert!(!space.is_idle(), "subscribers are not idle");
    space.stop_describing();
    record.published.clear();
    request(&mut space, client, "", &Request::exclusive("a"), &mut record);
    assert!(record.published.is_empty());
}

#[test]
fn ended_client_loses_all_its_requests_before_others_are_granted() {
    let (mut space, mut record) = (space(DeadlockPolicy::Ignore), Record::default());
    let (ended, other) = (space.add_client(), space.add_client());
    request(&mut space, ended, "held", &Request::exclusive("a"), &mut record);
    request(&mut space, ended, "pending", &Request::exclusive("a"), &mut record);
    request(&mut space, other, "other", &Request::exclusive("a"), &mut record);
    record.take();
    record.now = 4;
    assert!(space.end_client(ended, &mut record));
    assert_eq!(
        record.take(),
        [
            "held: ended, granted at 0",
            "pending: ended, pending",
            "other: granted 2, requested at 0",
        ]
    );
    assert!(!space.end_client(ended, &mut record));
    let refused = space.request(ended, &Request::exclusive("b"), ("", Some("tag")), &mut record);
    assert_eq!(refused, Err(SpaceError::Request(RequestError::UnknownClient)));
    assert_eq!((space.tag_count(), record.take()), (0, vec![]));
}

#[test]
fn losses_of_suspended_client_keep_their_notes_when_slots_are_reused() {
    let (mut space, mut record) = (space(DeadlockPolicy::Ignore), Record::default());
    let (sleeper, other) = (space.add_client(), space.add_client());
    request(&mut space, sleeper, "sleeper", &Request::exclusive("a"), &mut record);
    assert!(space.suspend(sleeper, SuspendPolicy::EvictOnContention, &mut record));
    record.take();
    request(&mut space, other, "other", &Request::exclusive("a"), &mut record);
    assert_eq!(record.evicted, [sleeper]);
    assert_eq!(record.take(), ["other: granted 2, requested at 0"]);
    assert!(space.resume(sleeper, &mut record));
    let lost = "sleeper: lost, evicted while its client was suspended, granted at 0";
    assert_eq!(record.take(), [lost]);
}

#[test]
fn suspended_client_is_evicted_and_receives_its_losses_when_resumed() {
    let (mut space, mut record) = (space(DeadlockPolicy::Ignore), Record::default());
    let (sleeper, other) = (space.add_client(), space.add_client());
    request(&mut space, sleeper, "sleeper", &Request::exclusive("a"), &mut record);
    request(&mut space, other, "other", &Request::exclusive("a"), &mut record);
    record.take();
    assert!(space.suspend(sleeper, SuspendPolicy::EvictOnContention, &mut record));
    assert_eq!(record.evicted, [sleeper]);
    assert_eq!(record.take(), ["other: granted 2, requested at 0"]);
    assert!(space.resume(sleeper, &mut record));
    assert!(!space.resume(sleeper, &mut record));
    let lost = "sleeper: lost, evicted while its client was suspended, granted at 0";
    assert_eq!(record.take(), [lost]);
}

#[test]
fn idle_space_drops_memory_of_its_notes_and_tags() {
    let (mut space, mut record) = (space(DeadlockPolicy::Ignore), Record::default());
    let client = space.add_client();
    let idle = space.memory();
    let requests: Vec<RequestId> = (0..3000)
        .map(|number| {
            let request = Request::exclusive(format!("name {number}"));
            space.request(client, &request, ("", Some("tag")), &mut record).unwrap().0
        })
        .collect();
    assert!(space.memory() > idle + 3000 && space.tag_count() == 3000);
    for id in requests {
        assert!(space.release(id, &mut record));
    }
    assert_eq!((space.notes().slot_count(), space.tag_count()), (0, 0));
    assert!(space.memory() < 3000, "{} bytes are left", space.memory());
    assert!(space.is_idle());
}

#[test]
fn gathered_space_keeps_notes_tags_times_and_watches() {
    const SHARDS: usize = 4;
    let mut shards: [Space<Labels>; SHARDS] =
        LockManager::shards(KEY).map(|shard| Space::new(shard, DeadlockPolicy::Ignore));
    let mut whole: Space<Labels> = Space::new(
        LockManager::whole(&shards.each_ref().map(Space::manager)),
        DeadlockPolicy::Ignore,
    );
    let client = whole.add_client();
    for shard in &mut shards {
        assert_eq!(shard.add_client(), client);
    }
    let mut record = Record::default();
    // One lock and one waiter for each of these names, so that every shard has some.
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut locks = Vec::new();
    for (now, name) in (10..).zip(names) {
        record.now = now;
        let shard = &mut shards[LockManager::shard_of::<SHARDS>(&Name::from(name))];
        let request = Request::exclusive(name);
        let (lock, _) = shard.request(client, &request, (name, Some(name)), &mut record).unwrap();
        shard.watch_contention(lock, &mut record);
        locks.push((lock, name, now));
    }
    assert!(shards.iter().filter(|shard| !shard.is_idle()).count() > 1);
    record.take();
    whole.gather(shards.each_mut());
    assert!(shards.iter().all(|shard| shard.is_idle() && shard.tag_count() == 0));
    for &(lock, name, since) in &locks {
        assert_eq!(whole.notes().get(lock), Some(&name));
        assert_eq!((whole.tag(lock), whole.notes().since(lock)), (Some(&name), since));
    }
    record.now = 99;
    let all = Request::exclusive(Scope::new(names).unwrap());
    request(&mut whole, client, "all", &all, &mut record);
    let contended: Vec<String> = names.iter().map(|name| format!("{name}: contended")).collect();
    assert_eq!(record.take(), contended);
    for (lock, ..) in locks {
        assert!(whole.release(lock, &mut record));
    }
    let last = record.take().pop().unwrap();
    assert!(last.starts_with("all: granted ") && last.ends_with(", requested at 99"), "{last}");
}
