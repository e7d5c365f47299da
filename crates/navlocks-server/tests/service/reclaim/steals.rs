//! Steals and forced releases around a restart.

use navlocks_wire::{LossCause, Over, Reply, RequestKey, ToClient, UnclaimedSession, Why};

use super::{lost, orphaned, recovery, request, restart};
use crate::client::{Client, tcp_stream};
use crate::running::Running;

fn own_pid() -> String {
    format!(" (pid {})", std::process::id())
}

/// Hears that a lock is lost. Returns why, and its thief in words.
fn loss(client: &mut Client, id: u64) -> (LossCause, Option<Box<str>>) {
    match client.hear() {
        ToClient::Over(Over { id: over, why: Why::Lost(lost) }) if over == id => {
            (lost.cause, lost.thief)
        }
        other => panic!("no loss: {other:?}"),
    }
}

#[test]
fn stolen_lock_cannot_be_claimed_and_the_thief_keeps_it() {
    let service = Running::start();
    let (mut victim, victims) = Client::unix_welcome(service.unix());
    let (mut thief, thiefs) = Client::unix_welcome(service.unix());
    let old = victim.hold(1, "a");
    thief.say(r#"{"request":{"id":1,"names":["a"],"wait":"steal"}}"#);
    let token = thief.granted(1);
    // The victim has not read of it when the service is killed, twice.
    let service = restart(restart(service));
    let held = format!(r#""id":1,"names":["a"],"token":{old}"#);
    let mut victim = Client::claim(service.unix(), &victims, &[&held]);
    let by = RequestKey::new(thiefs.session, 1);
    let (cause, words) = loss(&mut victim, 1);
    assert_eq!(cause, LossCause::Stolen(by));
    // Of the thief only the process is known, until its client comes back.
    assert!(words.is_some_and(|words| words.ends_with(&own_pid())));
    // The thief has not read of its grant, and does not steal a second time.
    let stolen = r#""id":1,"names":["a"],"wait":"steal""#;
    let mut thief = Client::claim(service.unix(), &thiefs, &[stolen]);
    assert_eq!(thief.granted(1), token);
    // Told once: the note of the victim is taken.
    victim.say(r#"{"end":1}"#);
    victim.settle();
}

#[test]
fn steal_and_forced_release_get_past_a_session_that_does_not_come_back() {
    let service = Running::start();
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    let (a, b) = (holder.hold(1, "a"), holder.hold(2, "b"));
    let c = holder.hold(3, "c");
    let service = restart(service);
    let mut other = Client::unix(service.unix());
    assert_eq!(
        recovery(&mut other),
        [UnclaimedSession {
            session: welcome.session,
            pid: Some(std::process::id()),
            left_ms: None,
            held: 3
        }]
    );
    other.say_all([request(1, "b"), request(2, "c")]);
    other.say(r#"{"request":{"id":3,"names":["a"],"wait":"steal","tag":"nightly"}}"#);
    assert!(other.granted(3) > c);
    other.say(r#"{"ask":{"id":1,"question":{"force-release":"b"}}}"#);
    other.granted(1);
    assert!(matches!(other.hear(), ToClient::Answer(answer) if answer.reply == Reply::Released(1)));
    let held = [(1, "a", a), (2, "b", b), (3, "c", c)]
        .map(|(id, name, token)| format!(r#""id":{id},"names":["{name}"],"token":{token}"#));
    let held: Vec<&str> = held.iter().map(String::as_str).collect();
    let mut holder = Client::claim(service.unix(), &welcome, &held);
    let own = recovery(&mut other);
    assert_eq!(own, []);
    let (cause, words) = loss(&mut holder, 1);
    assert!(matches!(cause, LossCause::Stolen(_)));
    assert_eq!(words, Some(format!("nightly{}", own_pid()).into()));
    assert_eq!(holder.hear(), lost(2, LossCause::ForceReleased));
    holder.say(r#"{"end":3}"#);
    other.granted(2);
}

#[test]
fn steal_of_all_frees_the_other_names_of_the_waiters_that_it_takes_away() {
    let (service, _welcome, _token, _holder) = orphaned();
    let (mut other, mut thief) = (Client::unix(service.unix()), Client::unix(service.unix()));
    other.say(r#"{"request":{"id":1,"names":["a","b"]}}"#);
    other.say(request(2, "b"));
    other.settle();
    thief.say(r#"{"request":{"id":1,"names":["a"],"wait":"steal-all"}}"#);
    thief.granted(1);
    assert!(matches!(loss(&mut other, 1), (LossCause::Stolen(_), _)));
    other.granted(2);
}

#[test]
fn thief_that_an_earlier_service_knew_is_described_by_its_live_request() {
    let service = Running::start();
    let (mut victim, victims) = Client::tcp(service.tcp());
    let (mut thief, thiefs) = Client::unix_welcome(service.unix());
    let old = victim.hold(1, "a");
    let steal = r#""id":1,"names":["a"],"wait":"steal","tag":"nightly""#;
    thief.say(format!(r#"{{"request":{{{steal}}}}}"#));
    let token = thief.granted(1);
    let service = restart(service);
    let stolen = format!(r#"{steal},"token":{token}"#);
    let mut thief = Client::claim(service.unix(), &thiefs, &[&stolen]);
    thief.settle();
    let held = format!(r#""id":1,"names":["a"],"token":{old}"#);
    let mut victim = Client::silent(tcp_stream(service.tcp()));
    victim.claims(&victims, &[&held]);
    let (_, words) = loss(&mut victim, 1);
    assert_eq!(words, Some(format!("nightly{}", own_pid()).into()));
    drop(victim);
    // A later connection reads the same, although the thief is gone.
    thief.leave();
    let mut victim = Client::resume(service.tcp(), &victims);
    victim.welcome();
    victim.name_all(&[&held]);
    assert_eq!(loss(&mut victim, 1).1, words);
    // After a kill there is no trace of a thief that has left.
    let service = restart(service);
    let mut victim = Client::silent(tcp_stream(service.tcp()));
    victim.claims(&victims, &[&held]);
    let (cause, words) = loss(&mut victim, 1);
    assert_eq!((cause, words), (LossCause::Stolen(RequestKey::new(thiefs.session, 1)), None));
}
