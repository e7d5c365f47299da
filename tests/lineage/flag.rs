//! Flags and their timeouts. The clock is real and the timeout short; tests await the outcome,
//! never a duration.

use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use navlocks::EventKind;
use navlocks::blocking::block_on;
use navlocks::lineage::{Flag, request_flag};
use navlocks::{Lock, Locks, Mode, RequestError, RequestErrorKind, Scope};

use crate::support::{Task, assert_idle, held, pending};

const SHORT: Duration = Duration::from_millis(10);

fn flag(
    locks: &Locks,
    scope: impl Into<Scope>,
    mode: Mode,
    timeout: Option<Duration>,
) -> Task<Result<Flag, RequestError>> {
    let (locks, scope) = (locks.clone(), scope.into());
    Task::new(async move { request_flag(&locks, scope, mode, timeout).await })
}

fn exclusive(locks: &Locks) -> Lock {
    block_on(locks.request("a").into_future()).unwrap()
}

/// Waits in a way that takes at least this time.
fn let_a_timeout_pass(after: Duration) {
    let locks = Locks::new();
    let _held = exclusive(&locks);
    let passed = flag(&locks, "a", Mode::Exclusive, Some(after)).finish();
    assert_eq!(passed.unwrap_err(), RequestErrorKind::TimedOut { after });
}

#[test]
fn t03_request_without_timeout_waits() {
    let locks = Locks::new();
    let holder = exclusive(&locks);
    let mut waiting = flag(&locks, "a", Mode::Exclusive, None);
    waiting.waits();
    let_a_timeout_pass(SHORT);
    assert!(!waiting.is_woken());
    waiting.waits();
    drop(holder);
    assert_eq!(waiting.wakes_and_ends().unwrap().mode(), Mode::Exclusive);
}

#[test]
fn t04_timed_out_request_leaves_the_queue_and_waiters_behind_are_granted() {
    let locks = Locks::new();
    let _reader = block_on(locks.request("a").shared().into_future()).unwrap();
    let mut writer = flag(&locks, ["a", "b"], Mode::Exclusive, Some(SHORT));
    writer.waits();
    let mut reader = flag(&locks, "a", Mode::Shared, None);
    reader.waits();
    let mut other = flag(&locks, "b", Mode::Exclusive, None);
    other.waits();
    let error = writer.finish().unwrap_err();
    assert_eq!(error, RequestErrorKind::TimedOut { after: SHORT });
    assert_eq!(error.dom_exception_name(), "TimeoutError");
    assert_eq!(reader.wakes_and_ends().unwrap().scope(), &Scope::from("a"));
    assert_eq!(other.wakes_and_ends().unwrap().scope(), &Scope::from("b"));
}

#[test]
fn t05_timeout_of_zero_grants_a_free_flag() {
    let locks = Locks::new();
    let free = flag(&locks, "a", Mode::Exclusive, Some(Duration::ZERO)).ends().unwrap();
    // The flag is held: the request fails at once and without a place in the queue.
    let mut events = locks.events();
    let error = flag(&locks, "a", Mode::Exclusive, Some(Duration::ZERO)).ends().unwrap_err();
    assert_eq!(error, RequestErrorKind::TimedOut { after: Duration::ZERO });
    let told: Vec<EventKind> = std::iter::from_fn(|| events.try_recv())
        .map(Result::unwrap)
        .map(|event| event.kind)
        .collect();
    assert_eq!(told, [EventKind::Requested, EventKind::Unavailable]);
    drop(free);
    assert_idle(&locks);
}

#[test]
fn t06_timeout_stops_at_grant() {
    let locks = Locks::new();
    let at_once = flag(&locks, "a", Mode::Exclusive, Some(SHORT)).ends().unwrap();
    let mut later = flag(&locks, "a", Mode::Exclusive, Some(Duration::from_secs(3600)));
    later.waits();
    let_a_timeout_pass(2 * SHORT);
    assert_eq!((at_once.loss(), held(&locks)), (None, vec!["a".to_owned()]));
    assert!(block_on(at_once.released()).is_ok());
    let later = later.wakes_and_ends().unwrap();
    assert!(block_on(later.released()).is_ok());
}

#[test]
fn t06_grant_polled_after_the_timeout_counts() {
    let locks = Locks::new();
    let holder = exclusive(&locks);
    let mut waiting = flag(&locks, "a", Mode::Exclusive, Some(SHORT));
    waiting.waits();
    drop(holder);
    // The flag is granted in time; the task is busy until the timeout is over.
    let_a_timeout_pass(2 * SHORT);
    assert!(waiting.wakes_and_ends().is_ok());
}

#[test]
fn t07_race_of_timeout_and_grant_has_one_outcome() {
    const RACES: u64 = 10_000;
    let locks = Locks::new();
    let racer = locks.new_client();
    let mut events = locks.events();
    let (hand_over, handed_over) = mpsc::channel::<(Lock, u64)>();
    let (tell, told) = mpsc::channel();
    let releaser = thread::spawn(move || {
        for (lock, spins) in handed_over {
            (0..spins).for_each(|_| std::hint::spin_loop());
            drop(lock);
            tell.send(()).unwrap();
        }
    });
    let (mut granted, mut timed_out) = (0, 0);
    for race in 0..RACES {
        let after = Duration::from_micros(1 + race % 64);
        let holder = exclusive(&locks);
        let mut waiting = flag(&racer, "a", Mode::Exclusive, Some(after));
        let first = waiting.poll();
        hand_over.send((holder, race * 61 % 6_000)).unwrap();
        let outcome = match first {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => waiting.finish(),
        };
        told.recv().unwrap();
        let expected = match outcome {
            Ok(flag) => {
                granted += 1;
                assert_eq!((held(&locks), pending(&locks)), (vec!["a".to_owned()], vec![]));
                vec![
                    EventKind::Requested,
                    EventKind::Granted(flag.fencing_token()),
                    EventKind::Released,
                ]
            }
            Err(error) => {
                timed_out += 1;
                assert_eq!(error, RequestErrorKind::TimedOut { after });
                vec![EventKind::Requested, EventKind::Withdrawn]
            }
        };
        assert_idle(&locks);
        let told = std::iter::from_fn(|| events.try_recv()).map(Result::unwrap);
        let of_racer = told.filter(|event| event.client == racer.client_id());
        assert_eq!(of_racer.map(|event| event.kind).collect::<Vec<_>>(), expected);
    }
    assert_eq!(granted + timed_out, RACES);
    println!("{granted} granted, {timed_out} timed out");
    drop(hand_over);
    releaser.join().unwrap();
}
