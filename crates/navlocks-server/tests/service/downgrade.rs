//! Downgrades: a lock gets a mode that allows more holders, in place.

use navlocks_core::Mode;
use navlocks_wire::{Downgrade, Event, LossCause, Over, Reply, ToClient, Welcome, What};

use crate::client::{Client, tcp_stream};
use crate::running::Running;

const TO_SHARED: &str = r#"{"downgrade":{"id":1,"mode":"shared"}}"#;
const READ: &str = r#"{"request":{"id":1,"names":["a"],"mode":"shared"}}"#;
const WRITE: &str = r#"{"request":{"id":2,"names":["a"]}}"#;

/// Receives that lock 1 has this mode now.
#[track_caller]
fn downgraded(client: &mut Client, mode: Mode) {
    assert_eq!(client.hear(), ToClient::Downgraded(Downgrade { id: 1, mode }));
}

/// Returns the claim of lock 1 in a mode.
fn claim_of(token: u64, mode: &str) -> String {
    format!(r#""id":1,"names":["a"],"mode":{mode},"token":{token}"#)
}

fn claim_by_tcp(service: &Running, welcome: &Welcome, claim: &str) -> Client {
    let mut holder = Client::silent(tcp_stream(service.tcp()));
    holder.claims(welcome, &[claim]);
    holder
}

/// Returns the modes of the locks held and requests pending.
fn modes(client: &mut Client) -> (Vec<Mode>, Vec<Mode>) {
    client.say(r#"{"ask":{"id":1,"question":{"locks":"partition"}}}"#);
    let ToClient::Answer(answer) = client.hear() else { panic!("no answer") };
    let Reply::Locks { held, pending } = answer.reply else { panic!("no snapshot") };
    let modes = |infos: Vec<navlocks_wire::Info>| infos.iter().map(|it| it.about.mode).collect();
    (modes(held), modes(pending))
}

#[test]
fn w01_downgrade_lets_readers_in_and_subscribers_see_the_new_mode() {
    let service = Running::start();
    let [mut holder, mut reader, mut writer, mut subscriber] =
        [(); 4].map(|()| Client::unix(service.unix()));
    holder.hold(1, "a");
    reader.say(READ);
    reader.settle();
    writer.say(WRITE);
    writer.settle();
    subscriber.listen();
    holder.say(TO_SHARED);
    downgraded(&mut holder, Mode::Shared);
    reader.granted(1);
    let events = [(); 2].map(|()| match subscriber.hear() {
        ToClient::Event(Event::Request(event)) => (event.about.mode, event.what),
        other => panic!("no event: {other:?}"),
    });
    assert_eq!(events[0], (Mode::Shared, What::Downgraded));
    assert!(matches!(events[1].1, What::Granted(_)));
    let now = modes(&mut holder);
    assert_eq!(now, (vec![Mode::Shared, Mode::Shared], vec![Mode::Exclusive]));
    // To the same mode is no change, and has an answer too.
    holder.say(TO_SHARED);
    downgraded(&mut holder, Mode::Shared);
}

#[test]
fn w02_downgrade_to_a_smaller_limit_is_answered_by_the_present_one() {
    let service = Running::start();
    let mut holder = Client::unix(service.unix());
    holder.hold(1, "a");
    for (asked, mode) in [(r#"{"limit":3}"#, 3), (r#"{"limit":2}"#, 3), (r#""exclusive""#, 3)] {
        holder.say(format!(r#"{{"downgrade":{{"id":1,"mode":{asked}}}}}"#));
        downgraded(&mut holder, Mode::limited(mode).expect("a limit"));
    }
}

#[test]
fn w03_downgrade_of_a_lost_or_unknown_lock_has_no_answer() {
    let service = Running::start();
    let (mut holder, mut other) = (Client::unix(service.unix()), Client::unix(service.unix()));
    holder.hold(1, "a");
    other.say(r#"{"ask":{"id":1,"question":{"force-release":"a"}}}"#);
    other.hear();
    holder.say_all([TO_SHARED, r#"{"downgrade":{"id":9,"mode":"shared"}}"#]);
    assert_eq!(holder.hear(), ToClient::Over(Over::lost(1, LossCause::ForceReleased)));
    holder.settle();
    // Neither has a pending request.
    other.hold(2, "a");
    holder.say_all([WRITE, r#"{"downgrade":{"id":2,"mode":"shared"}}"#]);
    holder.settle();
    assert_eq!(modes(&mut other), (vec![Mode::Exclusive], vec![Mode::Exclusive]));
}

#[test]
fn w04_downgraded_lock_has_its_mode_after_a_kill() {
    let service = Running::start();
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    let token = holder.hold(1, "a");
    holder.say(TO_SHARED);
    downgraded(&mut holder, Mode::Shared);
    let service = Running::again(service.kill(), |_| {});
    let mut writer = Client::unix(service.unix());
    writer.say(WRITE);
    writer.settle();
    // The claim of the stricter mode is that of another request.
    let mut holder = Client::claim(service.unix(), &welcome, &[&claim_of(token, r#""shared""#)]);
    holder.settle();
    let mut reader = Client::unix(service.unix());
    reader.say(READ);
    reader.settle();
    assert_eq!(modes(&mut holder), (vec![Mode::Shared], vec![Mode::Exclusive, Mode::Shared]));
    holder.say(r#"{"end":1}"#);
    assert!(writer.granted(2) > token);
}

#[test]
fn w04_absent_reader_that_was_a_writer_lets_readers_in_after_a_kill() {
    for (mode, allows) in [(r#""shared""#, true), (r#""exclusive""#, false)] {
        let service = Running::start();
        let (mut holder, welcome) = Client::unix_welcome(service.unix());
        let token = holder.hold(1, "a");
        if allows {
            holder.say(TO_SHARED);
            downgraded(&mut holder, Mode::Shared);
        }
        let service = Running::again(service.kill(), |_| {});
        let mut reader = Client::unix(service.unix());
        reader.say(READ);
        if allows {
            reader.granted(1);
        }
        reader.settle();
        let claim = claim_of(token, mode);
        let mut holder = Client::claim(service.unix(), &welcome, &[&claim]);
        holder.settle();
        if !allows {
            holder.say(TO_SHARED);
            downgraded(&mut holder, Mode::Shared);
            reader.granted(1);
        }
    }
}

#[test]
fn w04_downgrade_whose_message_was_lost_counts_by_the_claim() {
    let service = Running::start();
    let (mut holder, welcome) = Client::tcp(service.tcp());
    let token = holder.hold(1, "a");
    // The connection breaks before the downgrade arrives: the claim has the new mode.
    let claim = claim_of(token, r#"{"limit":3}"#);
    drop(holder);
    let mut holder = Client::resume(service.tcp(), &welcome);
    assert!(holder.welcome().resumed);
    holder.name_all(&[&claim]);
    downgraded(&mut holder, Mode::limited(3).expect("a limit"));
    // The service is killed before the next one arrives.
    let service = Running::again(service.kill(), |_| {});
    let claim = claim_of(token, r#""shared""#);
    let mut holder = claim_by_tcp(&service, &welcome, &claim);
    holder.settle();
    // And the one after that knows the mode of the claim.
    let service = Running::again(service.kill(), |_| {});
    let mut reader = Client::unix(service.unix());
    reader.say(READ);
    reader.granted(1);
    // A claim of the stricter mode is no claim of this lock any more.
    let claim = claim_of(token, r#"{"limit":3}"#);
    let mut holder = claim_by_tcp(&service, &welcome, &claim);
    assert_eq!(holder.hear(), ToClient::Over(Over::lost(1, LossCause::NotReclaimed)));
}
