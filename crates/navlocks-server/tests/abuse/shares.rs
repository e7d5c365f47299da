//! Clients of one tenant that take all places they can get.

use std::time::Duration;

use navlocks_wire::{Event, FaultCode, Over, Reply, ToClient, Why};

use crate::bystander::{ABUSER, BYSTANDER, Bystander, connect, join, with_tenants};
use crate::client::{Client, tcp_stream};
use crate::process::metric;
use crate::running::Running;

#[track_caller]
fn refused_by_limit(client: &mut Client) -> String {
    match client.hear() {
        ToClient::Over(Over { why: Why::Refused(refused), .. })
            if refused.fault.code == FaultCode::Limit =>
        {
            refused.fault.message
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn sessions_of_one_tenant_leave_room_for_others() {
    let service = Running::with(|config| {
        with_tenants(config);
        config.limits.sessions_max = 40;
        config.limits.sessions_per_tenant_max = 20;
    });
    let bystander = Bystander::watch(service.tcp());
    let mut refused = 0;
    for _ in 0..60 {
        let mut client = connect(service.tcp(), ABUSER);
        client.say(r#"{"hello":{"lease-ms":60000}}"#);
        match client.hear() {
            // The connection breaks, and the session stays for its lease.
            ToClient::Welcome(_) => {}
            ToClient::Error(fault) => {
                assert_eq!(fault.code, FaultCode::Limit, "{fault}");
                refused += 1;
            }
            other => panic!("neither welcome nor refused: {other:?}"),
        }
    }
    assert_eq!(refused, 40);
    Client::unix(service.unix()).hold(1, "a");
    bystander.served_well();
}

#[test]
fn partition_beyond_the_share_is_refused_alone_and_the_session_goes_on() {
    let service = Running::with(|config| {
        with_tenants(config);
        config.limits.partitions_max = 20;
        config.limits.partitions_per_tenant_max = 10;
    });
    let bystander = Bystander::watch(service.tcp());
    let (mut client, _) = join(service.tcp(), ABUSER);
    let token = client.hold(1, "kept");
    client.say_all((1..=30).map(|n| format!(r#"{{"open":{{"client":{n},"partition":"{n}"}}}}"#)));
    client.say(r#"{"request":{"id":2,"client":9,"names":["a"]}}"#);
    client.granted(2);
    client.say(r#"{"request":{"id":3,"client":10,"names":["a"]}}"#);
    let message = refused_by_limit(&mut client);
    assert!(message.starts_with("the tenant has 10 partitions"), "{message}");
    client.say(r#"{"ask":{"id":1,"client":30,"question":{"locks":"partition"}}}"#);
    let ToClient::Answer(answer) = client.hear() else { panic!("not an answer") };
    assert!(matches!(answer.reply, Reply::Refused(fault) if fault.code == FaultCode::Limit));
    client.say(r#"{"watch":{"events":30}}"#);
    assert!(
        matches!(client.hear(), ToClient::Event(Event::Refused(refused)) if refused.client == 30)
    );
    // A partition that is closed makes room for another one.
    client.say_all([
        r#"{"close":30}"#,
        r#"{"close":9}"#,
        r#"{"open":{"client":31,"partition":"x"}}"#,
    ]);
    client.say(r#"{"request":{"id":4,"client":31,"names":["a"]}}"#);
    assert!(client.granted(4) > token);
    bystander.served_well();
}

#[test]
fn connection_without_a_token_gives_way_to_later_ones() {
    let service = Running::with(|config| {
        with_tenants(config);
        config.limits.connections_max = 50;
        config.limits.strangers_max = 8;
        config.limits.stranger_time_min = Duration::from_millis(20);
    });
    let bystander = Bystander::watch(service.tcp());
    let silent: Vec<_> = (0..200).map(|_| tcp_stream(service.tcp())).collect();
    Client::unix(service.unix()).hold(1, "a");
    join(service.tcp(), BYSTANDER).0.hold(1, "a");
    assert!(metric(service.unix(), "strangers") <= 8);
    bystander.served_well();
    drop(silent);
}

#[test]
fn connections_of_one_tenant_leave_room_for_others() {
    let service = Running::with(|config| {
        with_tenants(config);
        config.limits.connections_max = 60;
        config.limits.connections_per_tenant_max = 30;
    });
    let bystander = Bystander::watch(service.tcp());
    let mut kept = Vec::new();
    for number in 0..100 {
        let mut client = connect(service.tcp(), ABUSER);
        if number >= 30 {
            assert_eq!(client.error().0, FaultCode::Limit);
        } else {
            kept.push(client);
        }
    }
    Client::unix(service.unix()).hold(1, "a");
    bystander.served_well();
}

#[test]
fn requests_and_bytes_of_one_tenant_leave_room_for_others() {
    let service = Running::with(|config| {
        with_tenants(config);
        config.limits.requests_per_tenant_max = 50;
        config.limits.bytes_per_tenant_max = 100_000;
    });
    let bystander = Bystander::watch(service.tcp());
    let (mut first, _) = join(service.tcp(), ABUSER);
    let (mut second, _) = join(service.tcp(), ABUSER);
    for id in 1..=25 {
        first.hold(id, &format!("first {id}"));
        second.hold(id, &format!("second {id}"));
    }
    first.say(r#"{"request":{"id":26,"names":["a"]}}"#);
    assert_eq!(refused_by_limit(&mut first), "the tenant has 50 requests, and takes no more");
    first.say_all((1..=25).map(|id| format!(r#"{{"end":{id}}}"#)));
    // A thousand short names take far more memory than their text.
    let names: Vec<String> = (0..1000).map(|n| format!("\"{n}\"")).collect();
    first.say(format!(r#"{{"request":{{"id":27,"names":[{}]}}}}"#, names.join(",")));
    let message = refused_by_limit(&mut first);
    assert!(message.contains("of the tenant take 100000 bytes"), "{message}");
    first.hold(28, "a");
    bystander.served_well();
}
