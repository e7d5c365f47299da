//! F31, F32: the standard's argument check, in its order.

use navlocks_core::{
    Environment, LockOptions, Mode, Name, Rejection, RequestError, Signal, SuspendPolicy, Wait,
    query_method_steps, request_method_steps,
};

use crate::support::{NOTHING, Table, manager, s, x};

const READY: Environment = Environment { fully_active: true, has_lock_manager: true };
const DETACHED: Environment = Environment { fully_active: false, has_lock_manager: true };
const OPAQUE: Environment = Environment { fully_active: true, has_lock_manager: false };
const DETACHED_AND_OPAQUE: Environment =
    Environment { fully_active: false, has_lock_manager: false };

/// One call of `request()`, by what can be wrong with it.
#[derive(Clone, Copy, Debug)]
struct Call {
    fully_active: bool,
    has_lock_manager: bool,
    reserved: bool,
    steal: bool,
    if_available: bool,
    shared: bool,
    /// None, or whether the signal is aborted.
    signal: Option<bool>,
}

impl Call {
    fn every() -> Vec<Self> {
        let mut calls = Vec::new();
        for bits in 0..64_u8 {
            let bit = |at: u8| bits >> at & 1 == 1;
            calls.extend([None, Some(false), Some(true)].map(|signal| Self {
                fully_active: bit(0),
                has_lock_manager: bit(1),
                reserved: bit(2),
                steal: bit(3),
                if_available: bit(4),
                shared: bit(5),
                signal,
            }));
        }
        calls
    }

    fn environment(self) -> Environment {
        Environment { fully_active: self.fully_active, has_lock_manager: self.has_lock_manager }
    }

    fn name(self) -> Name {
        Name::from(if self.reserved { "-a" } else { "a" })
    }

    fn options(self) -> LockOptions {
        LockOptions {
            mode: if self.shared { Mode::Shared } else { Mode::Exclusive },
            if_available: self.if_available,
            steal: self.steal,
            signal: self.signal.map(|aborted| if aborted { Signal::Aborted } else { Signal::Live }),
        }
    }

    /// What the text rejects with: the first of its steps that finds something.
    fn rejection(self) -> Option<Rejection> {
        let steps = [
            (!self.fully_active, Rejection::NotFullyActive),
            (!self.has_lock_manager, Rejection::NoLockManager),
            (self.reserved, Rejection::ReservedName),
            (self.steal && self.if_available, Rejection::StealIfAvailable),
            (self.steal && self.shared, Rejection::StealShared),
            (self.signal.is_some() && self.steal, Rejection::SignalSteal),
            (self.signal.is_some() && self.if_available, Rejection::SignalIfAvailable),
            (self.signal == Some(true), Rejection::SignalAborted),
        ];
        steps.into_iter().find(|&(wrong, _)| wrong).map(|(_, rejection)| rejection)
    }
}

#[test]
fn f31_the_first_failing_step_rejects_whatever_else_is_wrong() {
    for call in Call::every() {
        let answer = request_method_steps(call.environment(), call.name(), call.options());
        assert_eq!(answer.err(), call.rejection(), "{call:?}");
    }
}

#[test]
fn f31_mending_one_mistake_shows_the_next() {
    let mut options = LockOptions {
        mode: Mode::Shared,
        if_available: true,
        steal: true,
        signal: Some(Signal::Aborted),
    };
    let reserved = || Name::from("-");
    let name = || Name::from("a");
    let rejection = |environment: Environment, name: Name, options: LockOptions| {
        request_method_steps(environment, name, options).err()
    };

    assert_eq!(
        rejection(DETACHED_AND_OPAQUE, reserved(), options),
        Some(Rejection::NotFullyActive)
    );
    assert_eq!(rejection(OPAQUE, reserved(), options), Some(Rejection::NoLockManager));
    assert_eq!(rejection(READY, reserved(), options), Some(Rejection::ReservedName));
    assert_eq!(rejection(READY, name(), options), Some(Rejection::StealIfAvailable));
    options.if_available = false;
    assert_eq!(rejection(READY, name(), options), Some(Rejection::StealShared));
    options.mode = Mode::Exclusive;
    assert_eq!(rejection(READY, name(), options), Some(Rejection::SignalSteal));
    options.steal = false;
    options.if_available = true;
    assert_eq!(rejection(READY, name(), options), Some(Rejection::SignalIfAvailable));
    options.if_available = false;
    assert_eq!(rejection(READY, name(), options), Some(Rejection::SignalAborted));
    options.signal = Some(Signal::Live);
    assert_eq!(rejection(READY, name(), options), None);
}

#[test]
fn f31_each_rejection_has_the_standards_exception() {
    let exceptions = [
        (Rejection::NotFullyActive, Some("InvalidStateError")),
        (Rejection::NoLockManager, Some("SecurityError")),
        (Rejection::ReservedName, Some("NotSupportedError")),
        (Rejection::StealIfAvailable, Some("NotSupportedError")),
        (Rejection::StealShared, Some("NotSupportedError")),
        (Rejection::SignalSteal, Some("NotSupportedError")),
        (Rejection::SignalIfAvailable, Some("NotSupportedError")),
        // The caller rejects with the signal's own reason.
        (Rejection::SignalAborted, None),
    ];
    for (rejection, exception) in exceptions {
        assert_eq!(rejection.dom_exception_name(), exception, "{rejection:?}");
    }
}

#[test]
fn f31_query_checks_the_document_before_the_manager() {
    assert_eq!(query_method_steps(DETACHED_AND_OPAQUE), Err(Rejection::NotFullyActive));
    assert_eq!(query_method_steps(DETACHED), Err(Rejection::NotFullyActive));
    assert_eq!(query_method_steps(OPAQUE), Err(Rejection::NoLockManager));
    assert_eq!(query_method_steps(READY), Ok(()));
}

#[test]
fn f31_what_passes_becomes_the_request_it_says() {
    for call in Call::every().into_iter().filter(|call| call.rejection().is_none()) {
        let request = request_method_steps(READY, call.name(), call.options()).unwrap();
        let wait = match (call.steal, call.if_available) {
            (true, _) => Wait::Steal,
            (_, true) => Wait::IfAvailable,
            _ => Wait::Queue,
        };
        assert_eq!(request.scope.names(), [call.name()]);
        assert_eq!(request.mode, if call.shared { Mode::Shared } else { Mode::Exclusive });
        assert_eq!(request.wait, wait);
    }
}

#[test]
fn f32_a_rejected_call_leaves_no_trace() {
    let mut manager = manager();
    let client = manager.add_client();
    for call in Call::every().into_iter().filter(|call| call.rejection().is_some()) {
        // As a surface does it: nothing reaches the manager unless the check passes.
        let checked = request_method_steps(call.environment(), call.name(), call.options());
        assert!(checked.map(|request| manager.request(client, request)).is_err());
        let snapshot = manager.query();
        assert!(snapshot.held.is_empty() && snapshot.pending.is_empty(), "{call:?}");
        assert!(manager.poll_event().is_none());
    }
    assert_eq!(manager.name_count(), 0);
}

#[test]
fn f32_a_request_the_engine_refuses_leaves_no_trace() {
    let mut table = Table::new();
    table.holds("C1", "lock", x("a"));

    let overtaker = x("a").wait(Wait::Overtake);
    assert_eq!(table.refusal("C2", overtaker), RequestError::ExclusiveOvertake);

    assert_eq!(table.suspend("asleep", SuspendPolicy::EvictOnContention), NOTHING);
    assert_eq!(table.refusal("asleep", s("b")), RequestError::ClientSuspended);

    assert_eq!(table.terminate("dead"), NOTHING);
    assert_eq!(table.refusal("dead", s("b")), RequestError::UnknownClient);

    assert_eq!(table.manager.name_count(), 1);
}
