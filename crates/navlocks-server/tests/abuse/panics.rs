//! A panic in the task of a connection: the service ends, and no lock does.

use std::sync::Once;

use navlocks_wire::{FaultCode, Over, ToClient, Welcome};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::client::{Client, resumption, unix_stream};
use crate::running::Running;

/// A log that fails where a client claims to know a later service. So a message makes the task of
/// its connection panic, in a service as it ships.
struct FailingLog;

impl Subscriber for FailingLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Fails);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Fails;

impl Visit for Fails {
    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        assert!(!format!("{value:?}").contains("a client knows a later service"), "as a test");
    }
}

#[test]
fn panic_in_a_connection_ends_the_service_and_locks_outlive_it() {
    static LOG: Once = Once::new();
    LOG.call_once(|| tracing::subscriber::set_global_default(FailingLog).expect("the first log"));
    let service = Running::start();
    let (mut holder, holders) = Client::unix_welcome(service.unix());
    let (mut waiter, waiters) = Client::unix_welcome(service.unix());
    let token = holder.hold(1, "a");
    waiter.say(r#"{"request":{"id":1,"names":["a"]}}"#);
    waiter.settle();
    let mut failing = Client::silent(unix_stream(service.unix()));
    // The service logs that its client has seen a later one.
    failing.say(resumption(&Welcome { epoch: (1 << 53) - 1, ..holders.clone() }));
    let (ended, folder) = service.wait();
    let error = ended.expect_err("the service cannot trust its state");
    assert!(error.to_string().starts_with("the service has failed"), "{error}");
    assert_eq!(holder.error().0, FaultCode::ShuttingDown);
    let service = Running::again(folder, |_| {});
    let mut late = Client::unix(service.unix());
    late.say_all([
        r#"{"request":{"id":1,"names":["a"],"wait":"if-available"}}"#,
        r#"{"request":{"id":2,"names":["b"]}}"#,
    ]);
    late.granted(2);
    let waiting = r#""id":1,"names":["a"]"#;
    let mut waiter = Client::claim(service.unix(), &waiters, &[waiting]);
    let held = format!(r#"{waiting},"token":{token}"#);
    let mut holder = Client::claim(service.unix(), &holders, &[&held]);
    holder.settle();
    assert_eq!(late.hear(), ToClient::Over(Over::unavailable(1)));
    holder.say(r#"{"end":1}"#);
    assert!(waiter.granted(1) > token);
}
