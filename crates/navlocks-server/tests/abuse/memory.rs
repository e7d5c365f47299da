//! Clients of one tenant that take all memory they can get.

use navlocks_server::Limits;
use navlocks_wire::{FaultCode, Over, Reply, ToClient, Why};

use crate::bystander::{ABUSER, Bystander, join};
use crate::client::Client;
use crate::process::{Process, may_open, metric};

/// A request for a thousand names of this text, numbered.
fn thousand(id: u64, mode: &str, text: &str) -> String {
    let names: Vec<String> = (0..1000).map(|n| format!("\"{n}{text}\"")).collect();
    format!(r#"{{"request":{{"id":{id},"mode":"{mode}","names":[{}]}}}}"#, names.join(","))
}

#[test]
fn event_for_many_subscribers_is_written_once() {
    if !may_open(3_000) {
        return;
    }
    let service = Process::start();
    let bystander = Bystander::beside(&service);
    let before = service.memory();
    let mut subscribers: Vec<Client> = (0..1000)
        .map(|_| {
            let (mut client, _) = join(service.tcp, ABUSER);
            client.listen();
            client
        })
        .collect();
    let (mut client, _) = join(service.tcp, ABUSER);
    // Two events of 900,000 bytes for each of a thousand subscribers, which do not read.
    client.say(thousand(1, "exclusive", &"x".repeat(900)));
    client.granted(1);
    client.settle();
    // Each has a piece in its buffer, and all have the text together.
    let used = service.memory() - before;
    assert!(used < 256 << 20, "{used} bytes are used");
    let text = subscribers[0].hear_text();
    assert!(
        text.starts_with(r#"{"event":{"request":{"client":0,"about":"#) && text.len() > 900_000
    );
    bystander.served_well();
}

#[test]
fn answer_beyond_the_limit_is_refused_before_it_is_built() {
    let service = Process::start();
    let bystander = Bystander::beside(&service);
    let (mut client, _) = join(service.tcp, ABUSER);
    // A control character takes six bytes in JSON.
    for id in 1..=20 {
        client.say(thousand(id, "shared", &"\\u0001".repeat(100)));
        client.granted(id);
    }
    let before = service.memory();
    let mut askers: Vec<Client> = (0..60).map(|_| join(service.tcp, ABUSER).0).collect();
    for asker in &mut askers {
        asker
            .say_all((0..10).map(|id| {
                format!(r#"{{"ask":{{"id":{id},"question":{{"locks":"partition"}}}}}}"#)
            }));
    }
    for asker in &mut askers {
        for _ in 0..10 {
            let ToClient::Answer(answer) = asker.hear() else { panic!("not an answer") };
            assert!(
                matches!(answer.reply, Reply::Refused(fault) if fault.code == FaultCode::Limit)
            );
        }
    }
    let used = service.memory() - before;
    assert!(used < 64 << 20, "{used} bytes are used");
    bystander.served_well();
}

#[test]
fn askers_of_one_moment_share_an_answer() {
    let service = Process::start();
    let (mut client, _) = join(service.tcp, ABUSER);
    for id in 1..=2000 {
        client.hold(id, &format!("name {id}"));
    }
    let before = metric(&service.unix, "snapshots_total");
    client.say_all(
        (0..64).map(|id| format!(r#"{{"ask":{{"id":{id},"question":{{"locks":"partition"}}}}}}"#)),
    );
    for _ in 0..64 {
        let ToClient::Answer(answer) = client.hear() else { panic!("not an answer") };
        let Reply::Locks { held, .. } = answer.reply else { panic!("not a snapshot") };
        assert_eq!(held.len(), 2000);
    }
    let built = metric(&service.unix, "snapshots_total") - before;
    assert!(built < 64, "{built} answers were built");
    // A change is seen at once.
    client.say(r#"{"end":1}"#);
    client.say(r#"{"ask":{"id":99,"question":{"locks":"partition"}}}"#);
    let ToClient::Answer(answer) = client.hear() else { panic!("not an answer") };
    let Reply::Locks { held, .. } = answer.reply else { panic!("not a snapshot") };
    assert_eq!(held.len(), 1999);
}

#[test]
fn answers_left_unread_are_bounded_for_a_tenant() {
    let service = Process::start();
    let bystander = Bystander::beside(&service);
    let (mut client, _) = join(service.tcp, ABUSER);
    for id in 1..=1000 {
        client.hold(id, &format!("{id}{}", "x".repeat(4000)));
    }
    let before = service.memory();
    let mut askers: Vec<Client> = (0..160)
        .map(|_| {
            let (mut asker, _) = join(service.tcp, ABUSER);
            asker.say(r#"{"open":{"client":1}}"#);
            asker.say(r#"{"ask":{"id":1,"question":{"locks":"partition"}}}"#);
            // Makes the next answer another one.
            asker.say(r#"{"request":{"id":1,"client":1,"names":["y"],"mode":"shared"}}"#);
            asker
        })
        .collect();
    // The request of an asker comes after its question.
    while metric(&service.unix, "locks_held") < 1000 + 160 {
        assert_eq!(metric(&service.unix, "slow_readers_total"), 0, "an asker was ended");
    }
    let max = Limits::default().unread_bytes_per_tenant_max;
    let used = service.memory() - before;
    assert!(used < 2 * max, "{used} bytes are used");
    let refused = |asker: &mut Client| asker.hear_text().contains(r#""refused":{"code":"limit""#);
    // Connections are read in any order.
    let refused = askers.iter_mut().filter_map(|asker| refused(asker).then_some(())).count();
    assert!((1..160).contains(&refused), "{refused} of 160 answers were refused");
    bystander.served_well();
}

#[test]
fn search_for_deadlocks_looks_at_a_bounded_number_of_entries() {
    let service = Process::start();
    let bystander = Bystander::beside(&service);
    let (mut client, _) = join(service.tcp, ABUSER);
    client.hold(1, "0");
    for id in 2..=1000 {
        client.say(thousand(id, "shared", ""));
    }
    client.settle();
    let before = service.memory();
    client.say_all(
        (0..100).map(|id| format!(r#"{{"ask":{{"id":{id},"question":{{"waits":"deadlocks"}}}}}}"#)),
    );
    for _ in 0..100 {
        let ToClient::Answer(answer) = client.hear() else { panic!("not an answer") };
        assert!(matches!(answer.reply, Reply::Refused(fault) if fault.code == FaultCode::Limit));
    }
    let used = service.memory() - before;
    assert!(used < 64 << 20, "{used} bytes are used");
    bystander.served_well();
}

#[test]
fn memory_of_requests_is_counted_as_it_is_used() {
    let service = Process::start();
    let bystander = Bystander::beside(&service);
    let before = service.memory();
    let max = Limits::default().bytes_per_tenant_max;
    let mut taken = 0;
    let mut clients = Vec::new();
    'full: loop {
        let (mut client, _) = join(service.tcp, ABUSER);
        for id in 1..=1000 {
            client.say(thousand(id, "shared", ""));
            match client.hear() {
                ToClient::Granted(_) => taken += 1,
                ToClient::Over(Over { why: Why::Refused(refused), .. }) => {
                    assert_eq!(refused.fault.code, FaultCode::Limit);
                    if refused.fault.message.contains("tenant") {
                        break 'full;
                    }
                    break;
                }
                other => panic!("neither granted nor refused: {other:?}"),
            }
        }
        clients.push(client);
    }
    assert!(taken > 1000, "only {taken} requests of a thousand names are taken");
    let used = service.memory() - before;
    assert!(used < 2 * max, "{used} bytes are used, and {max} is the limit");
    bystander.served_well();
}
