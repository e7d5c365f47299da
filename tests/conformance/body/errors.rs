//! Errors: every cause is distinct, and has the standard's name.

use std::collections::HashSet;
use std::error::Error;
use std::time::Duration;

use navlocks::{DeadlockPolicy, LossCause, RequestError, RequestErrorKind};

use super::{Arm, start};
use crate::backend::Backend;
use crate::patience::soon;
use crate::watch::{caught_up, hold, queue, shows};

#[test]
fn decision_12_causes_of_loss_are_distinct() {
    let arm = start();
    let [locks, other] = arm.clients();
    let stolen = hold(locks.request("a"), "stolen");
    let by = hold(other.request("a").steal(), "thief").request_id();
    let forced = hold(locks.request("b"), "forced");
    assert_eq!(soon(other.force_release("b")), Ok(1));
    let ended = hold(locks.request("c"), "ended");
    locks.end_client();
    let losses = [&stolen, &forced, &ended].map(|lock| soon(lock.lost()));
    assert_eq!(
        losses,
        [LossCause::Stolen { by: by.into() }, LossCause::ForceReleased, LossCause::ClientEnded]
    );
    let words: HashSet<String> = losses.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), losses.len());
    for loss in losses {
        assert_eq!(loss.dom_exception_name(), "AbortError");
        // A request has the same text for the same cause.
        assert_eq!(RequestErrorKind::from(loss).dom_exception_name(), "AbortError");
    }
}

#[test]
fn decision_12_kinds_of_failure_are_distinct() {
    let arm = Arm::start(DeadlockPolicy::Refuse);
    let [holder, locks, other] = arm.clients();
    let timed_out = {
        let _held = hold(holder.request("a"), "holder");
        soon(locks.request("a").timeout(Duration::from_millis(1))).unwrap_err()
    };
    let deadlock = {
        let (theirs, own) = (hold(holder.request("b"), "theirs"), hold(locks.request("a"), "own"));
        let _waiter = queue(&holder, theirs.request("a"), "waiter");
        soon(own.request("b")).unwrap_err()
    };
    let [stolen, forced, ended] = [0, 1, 2].map(|way| {
        let held = hold(holder.request("a"), "holder");
        let unheard = queue(&locks, locks.request("a"), "unheard");
        drop(held);
        shows(&holder, ["unheard"], []);
        match way {
            0 => drop(soon(other.request("a").steal()).unwrap()),
            1 => drop(soon(other.force_release("a")).unwrap()),
            _ => locks.end_client(),
        }
        if way < 2 {
            caught_up(&locks);
        }
        shows(&holder, [], []);
        unheard.join().unwrap_err()
    });
    let overtake = soon(other.request("a").overtake()).unwrap_err();
    let errors = [
        (&timed_out, "TimeoutError"),
        (&deadlock, "AbortError"),
        (&stolen, "AbortError"),
        (&forced, "AbortError"),
        (&ended, "AbortError"),
        (&overtake, "NotSupportedError"),
    ];
    assert!(matches!(timed_out.kind(), RequestErrorKind::TimedOut { .. }));
    assert!(matches!(deadlock.kind(), RequestErrorKind::Deadlock(_)));
    assert!(matches!(stolen.kind(), RequestErrorKind::Stolen { .. }));
    assert_eq!(forced, RequestErrorKind::ForceReleased);
    assert_eq!(ended, RequestErrorKind::ClientEnded);
    assert_eq!(overtake, RequestErrorKind::ExclusiveOvertake);
    let mut said = HashSet::new();
    for (error, name) in errors {
        assert_eq!(error.dom_exception_name(), name, "{error}");
        assert!(said.insert(error.to_string()), "said twice: {error}");
    }
}

#[test]
fn errors_are_send_sync_and_have_sources() {
    let arm = start();
    let [holder, locks] = arm.clients();
    let _held = hold(holder.request("a"), "holder");
    let travel = || -> Result<(), Box<dyn Error + Send + Sync>> {
        drop(soon(locks.request("a").timeout(Duration::ZERO))?);
        Ok(())
    };
    let error = travel().unwrap_err();
    assert!(error.downcast_ref::<RequestError>().is_some());
    assert_eq!(error.to_string(), "'a' is not free");
}

#[test]
fn error_of_a_timeout_names_the_lock_and_its_holders() {
    let arm = start();
    let [holder, other, locks] = arm.clients();
    let held = [
        hold(holder.request("a").shared(), "first"),
        hold(other.request("a").shared(), "second"),
        hold(other.request("b"), "unrelated"),
    ];
    let after = Duration::from_millis(1);
    let error = soon(locks.request("a").timeout(after)).unwrap_err();
    let tags = error.holders().iter().map(|info| info.tag.as_deref());
    assert_eq!(tags.collect::<Vec<_>>(), [Some("first"), Some("second")]);
    let text = error.to_string();
    assert!(text.starts_with("'a' was not free within 1ms: held by first"), "{text}");
    assert!(text.contains(", second"), "{text}");
    drop(held);
    // A request behind waiters only has no lock in its way.
    locks.end_client();
    let error = soon(locks.request("a")).unwrap_err();
    assert_eq!((error.holders(), error.scope()), (&[][..], &"a".into()));
    assert!(error.to_string().starts_with("no lock on 'a': "), "{error}");
}
