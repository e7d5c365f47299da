//! Maximum holds: a lock is lost at its deadline, over restarts and broken connections too.

use std::time::{Duration, Instant};

use navlocks_wire::{FaultCode, LossCause, Over, ToClient};

use crate::client::Client;
use crate::running::Running;

const LOST: LossCause = LossCause::HeldTooLong;

fn request(id: u64, max_hold_ms: u64) -> String {
    format!(r#"{{"request":{{"id":{id},"names":["a"],"max-hold-ms":{max_hold_ms}}}}}"#)
}

#[test]
fn h01_lock_is_lost_at_its_deadline_and_the_next_request_granted() {
    let service = Running::start();
    let [mut holder, mut other] = [(); 2].map(|()| Client::unix(service.unix()));
    let begun = Instant::now();
    holder.say(request(1, 40));
    holder.granted(1);
    other.say(request(1, 1 << 52));
    other.granted(1);
    assert!(begun.elapsed() >= Duration::from_millis(40));
    assert_eq!(holder.hear(), ToClient::Over(Over::lost(1, LOST)));
}

#[test]
fn h03_time_that_is_no_maximum_hold_ends_the_session() {
    let service = Running::start();
    for bad in ["0", "-1", "1.5", "9007199254740992", "null", "\"1s\""] {
        let mut client = Client::unix(service.unix());
        client.say(format!(r#"{{"request":{{"id":1,"names":["a"],"max-hold-ms":{bad}}}}}"#));
        assert_eq!(client.error().0, FaultCode::BadMessage, "{bad}");
    }
}

#[test]
fn h04_deadline_goes_on_over_a_kill() {
    let service = Running::start();
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    // Far more than the restart takes: a time that began anew would show.
    const MAX: Duration = Duration::from_secs(3);
    holder.say(request(1, MAX.as_millis() as u64));
    let token = holder.granted(1);
    let granted = Instant::now();
    std::thread::sleep(MAX / 2);
    let service = Running::again(service.kill(), |_| {});
    let claim = format!(r#""id":1,"names":["a"],"max-hold-ms":3000,"token":{token},"ms":0"#);
    let mut holder = Client::claim(service.unix(), &welcome, &[&claim]);
    holder.settle();
    assert_eq!(holder.hear(), ToClient::Over(Over::lost(1, LOST)));
    let held = granted.elapsed();
    assert!(held < MAX + MAX / 2, "the time began anew: {held:?}");
}

#[test]
fn h04_deadline_passes_while_the_holder_is_absent() {
    let service = Running::start();
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    holder.say(request(1, 200));
    let token = holder.granted(1);
    let service = Running::again(service.kill(), |_| {});
    let mut other = Client::unix(service.unix());
    other.say(request(1, 1 << 52));
    other.granted(1);
    let claim = format!(r#""id":1,"names":["a"],"max-hold-ms":200,"token":{token},"ms":0"#);
    let mut holder = Client::claim(service.unix(), &welcome, &[&claim]);
    assert_eq!(holder.hear(), ToClient::Over(Over::lost(1, LOST)));
    // A connection that breaks is no end of the time either.
    other.say(r#"{"end":1}"#);
    let (mut holder, welcome) = Client::tcp(service.tcp());
    holder.say(request(1, 200));
    let token = holder.granted(1);
    drop(holder);
    other.say(r#"{"request":{"id":2,"names":["a"]}}"#);
    other.granted(2);
    let mut holder = Client::resume(service.tcp(), &welcome);
    assert!(holder.welcome().resumed);
    let claim = format!(r#""id":1,"names":["a"],"max-hold-ms":200,"token":{token},"ms":0"#);
    holder.name_all(&[&claim]);
    assert_eq!(holder.hear(), ToClient::Over(Over::lost(1, LOST)));
}
