//! Locks that are stolen.

use std::future::IntoFuture;
use std::task::Poll;

use loom::future::block_on;
use loom::thread;
use navlocks::EventKind;
use navlocks::{Events, Locks, LossCause, RequestErrorKind, RequestId};

use crate::{assert_nothing_left, begin_to_wait, held, hold, model, poll, waiter};

/// Returns the events of a request so far.
fn story_of(request: RequestId, events: &mut Events) -> Vec<EventKind> {
    let events = std::iter::from_fn(|| events.try_recv()).map(Result::unwrap);
    events.filter(|event| event.request == request).map(|event| event.kind).collect()
}

/// The victim receives the loss, or had released before; in either case it knows which.
#[test]
fn steal_races_with_release() {
    model(|| {
        let locks = Locks::new();
        let mut events = locks.events();
        let victim = hold(locks.request("a"));
        let (id, token) = (victim.request_id(), victim.fencing_token());
        let other = thread::spawn(move || victim.release());
        let thief = hold(locks.request("a").steal());
        assert!(thief.fencing_token() > token);
        let released = other.join().unwrap();
        assert_eq!(held(&locks), [thief.request_id()]);
        let stolen = LossCause::Stolen { by: thief.request_id().into() };
        let end = story_of(id, &mut events).pop();
        match released {
            Ok(()) => assert_eq!(end, Some(EventKind::Released)),
            Err(loss) => {
                assert_eq!(loss, stolen);
                assert_eq!(end, Some(EventKind::Lost(stolen)));
            }
        }
        drop((thief, events));
        assert_nothing_left(&locks, "a");
    });
}

/// A client that is granted the lock meanwhile receives the theft, from the request or from the
/// lock.
#[test]
fn steal_races_with_grant() {
    model(|| {
        let locks = Locks::new();
        let first = hold(locks.request("a"));
        let mut waiting = begin_to_wait(locks.request("a"));
        let releasing = thread::spawn(move || first.release());
        let stealing = waiter(locks.request("a").steal());
        let mut polled = poll(&mut waiting);
        let released = releasing.join().unwrap();
        let thief = stealing.join().unwrap().unwrap();
        assert_eq!(held(&locks), [thief.request_id()]);
        let stolen = LossCause::Stolen { by: thief.request_id().into() };
        if polled.is_pending() {
            polled = poll(&mut waiting);
        }
        let still_waits = polled.is_pending();
        match polled {
            Poll::Ready(Ok(victim)) => assert_eq!(victim.release(), Err(stolen)),
            Poll::Ready(Err(error)) => assert_eq!(error, RequestErrorKind::from(stolen)),
            // The theft came before the release: the queue is unchanged.
            Poll::Pending => assert_eq!(released, Err(stolen)),
        }
        drop(thief);
        if still_waits {
            block_on(waiting).unwrap().release().unwrap();
        }
        assert_nothing_left(&locks, "a");
    });
}

/// A request that was granted at once receives a theft as well.
#[test]
fn steal_races_with_request() {
    model(|| {
        let locks = Locks::new();
        let victim = thread::spawn({
            let locks = locks.clone();
            move || block_on(locks.request("a").if_available().into_future()).unwrap()
        });
        let thief = hold(locks.request("a").steal());
        let victim = victim.join().unwrap();
        let stolen = LossCause::Stolen { by: thief.request_id().into() };
        if let Some(victim) = victim {
            assert_eq!(victim.loss(), Some(stolen.clone()));
            assert_eq!(victim.release(), Err(stolen));
        }
        assert_eq!(held(&locks), [thief.request_id()]);
        drop(thief);
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn two_thieves_race() {
    model(|| {
        let locks = Locks::new();
        let other = waiter(locks.request("a").steal());
        let one = hold(locks.request("a").steal());
        let other = other.join().unwrap().unwrap();
        let (robbed, robber) =
            if one.fencing_token() < other.fencing_token() { (one, other) } else { (other, one) };
        assert_eq!(robbed.loss(), Some(LossCause::Stolen { by: robber.request_id().into() }));
        assert_eq!(robber.loss(), None);
        assert_eq!(held(&locks), [robber.request_id()]);
        drop((robbed, robber));
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn force_release_races_with_release_and_next_waiter_wakes() {
    model(|| {
        let locks = Locks::new();
        let first = hold(locks.request("a").shared());
        let next = waiter(locks.request("a"));
        let releasing = thread::spawn(move || first.release());
        let taken = block_on(locks.force_release("a")).unwrap();
        let released = releasing.join().unwrap();
        let next = next.join().unwrap();
        // The thief stole from the first holder, from the next, or found the lock free.
        match (released, next) {
            (Err(LossCause::ForceReleased), Ok(next)) => {
                assert_eq!((taken, next.loss()), (1, None));
            }
            (Ok(()), Ok(next)) => {
                assert_eq!(next.loss(), (taken == 1).then_some(LossCause::ForceReleased));
            }
            (Ok(()), Err(error)) => {
                assert_eq!(taken, 1);
                assert_eq!(error, RequestErrorKind::ForceReleased);
            }
            other => panic!("{other:?}"),
        }
        assert_nothing_left(&locks, "a");
    });
}
