//! The hosts of the embedding kit: partitions, request numbers of the caller, groups and limits.

use navlocks_core::kit::{
    Host, HostError, HostSink, LimitExceeded, Limits, Member, Memory, Notice,
};
use navlocks_core::{Answer, Request, Wait};

use crate::kit::{KEY, words};

/// Records the notices of a host.
#[derive(Default)]
struct Messages(Vec<(Member, u64, String)>);

impl HostSink<u64> for Messages {
    fn notify(&mut self, member: Member, number: u64, notice: &Notice<'_, u64>) {
        self.0.push((member, number, words(notice)));
    }
}

type TestHost = Host<&'static str, u64, &'static str>;

fn host(limits: Limits) -> TestHost {
    Host::new(KEY, limits)
}

#[test]
fn number_of_live_request_is_refused_and_free_again_afterwards() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let group = host.add_group();
    let member = host.open(group, "p").unwrap();
    let lock = Request::exclusive("a");
    let trying = lock.clone().wait(Wait::IfAvailable);
    let mut request = |host: &mut TestHost, number, request: &Request| {
        host.request(member, number, request, None, 0, &mut messages)
    };
    assert!(matches!(request(&mut host, 1, &lock), Ok(Answer::Granted(_))));
    assert_eq!(request(&mut host, 1, &lock), Err(HostError::NumberInUse(1)));
    assert_eq!(request(&mut host, 2, &trying), Ok(Answer::Unavailable));
    assert_eq!(request(&mut host, 2, &lock), Ok(Answer::Pending));
    let steal = lock.clone().wait(Wait::Steal);
    assert!(matches!(request(&mut host, 3, &steal), Ok(Answer::Granted(_))));
    // Request 1 was lost, so its number is free.
    assert_eq!(request(&mut host, 1, &lock), Ok(Answer::Pending));
    assert_eq!(host.memory().requests, 3);
}

#[test]
fn client_cannot_release_or_abort_requests_of_another() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let group = host.add_group();
    let (one, two) = (host.open(group, "p").unwrap(), host.open(group, "p").unwrap());
    let lock = Request::exclusive("a");
    host.request(one, 1, &lock, None, 0, &mut messages).unwrap();
    host.request(one, 2, &lock, None, 0, &mut messages).unwrap();
    assert!(!host.release(two, 1, 1, &mut messages));
    assert!(!host.abort(two, 2, 1, &mut messages));
    assert!(!host.abort(one, 1, 1, &mut messages), "a held request is not aborted");
    assert!(!host.release(one, 2, 1, &mut messages), "a pending request is not released");
    assert_eq!(host.query(two).held.len(), 1);
    assert!(host.release(one, 1, 1, &mut messages));
    assert!(host.release(one, 2, 2, &mut messages));
    assert_eq!(host.memory().requests, 0);
}

#[test]
fn group_ends_with_all_its_clients_and_no_others() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let (page, tab) = (host.add_group(), host.add_group());
    let (window, worker) = (host.open(page, "p").unwrap(), host.open(page, "p").unwrap());
    let other = host.open(tab, "p").unwrap();
    let elsewhere = host.open(tab, "q").unwrap();
    for (member, name) in [(window, "a"), (worker, "b"), (elsewhere, "a")] {
        host.request(member, 1, &Request::exclusive(name), None, 0, &mut messages).unwrap();
    }
    let both = Request::exclusive(["a", "b"]);
    host.request(other, 7, &both, None, 3, &mut messages).unwrap();
    messages.0.clear();
    assert!(host.end_group(page, 5, &mut messages));
    let expected = [
        (window, 1, "ended, granted at 0".to_owned()),
        (worker, 1, "ended, granted at 0".to_owned()),
        (other, 7, "granted 3, requested at 3".to_owned()),
    ];
    assert_eq!(messages.0, expected);
    assert!(!host.end_group(page, 5, &mut messages));
    assert_eq!(host.open(page, "p"), Err(HostError::UnknownGroup));
    let refused = host.request(window, 2, &both, None, 5, &mut messages);
    assert_eq!(refused, Err(HostError::UnknownMember));
    assert!(!host.close(window, 5, &mut messages));
    assert_eq!(host.query(elsewhere).held.len(), 1);
}

#[test]
fn limits_are_refused_by_name() {
    let mut limits = Limits::default();
    limits.partitions_max = 2;
    limits.clients_per_group_max = 3;
    limits.requests_per_client_max = 2;
    limits.names_per_request_max = 2;
    limits.name_bytes_max = 4;
    let (mut host, mut messages) = (host(limits), Messages::default());
    let exceeded = |limit, max| Some(HostError::Limit(LimitExceeded { limit, max }));
    let (group, spare) = (host.add_group(), host.add_group());
    let member = host.open(group, "p").unwrap();
    host.open(group, "q").unwrap();
    assert_eq!(host.open(spare, "r").err(), exceeded("partitions_max", 2));
    host.open(group, "q").unwrap();
    assert_eq!(host.open(group, "p").err(), exceeded("clients_per_group_max", 3));
    let mut request = |host: &mut TestHost, number, request: Request| {
        host.request(member, number, &request, None, 0, &mut messages).err()
    };
    let three = Request::exclusive(["a", "b", "c"]);
    assert_eq!(request(&mut host, 1, three), exceeded("names_per_request_max", 2));
    let long = Request::exclusive(["a", "abcde"]);
    assert_eq!(request(&mut host, 1, long), exceeded("name_bytes_max", 4));
    assert_eq!(request(&mut host, 1, Request::exclusive(["a", "abcd"])), None);
    assert_eq!(request(&mut host, 2, Request::exclusive("b")), None);
    let third = request(&mut host, 3, Request::exclusive("b"));
    assert_eq!(third, exceeded("requests_per_client_max", 2));
    assert!(host.release(member, 1, 0, &mut messages));
    let third = host.request(member, 3, &Request::exclusive("b"), None, 0, &mut messages);
    assert_eq!(third, Ok(Answer::Pending), "a released request counts no more");
}

#[test]
fn idle_host_uses_no_memory() {
    let (mut host, mut messages) = (host(Limits::default()), Messages::default());
    let group = host.add_group();
    for partition in ["p", "q"] {
        let member = host.open(group, partition).unwrap();
        for number in 0..100 {
            let request = Request::shared(format!("name {number}"));
            host.request(member, number, &request, Some("tag"), 0, &mut messages).unwrap();
        }
    }
    let memory = host.memory();
    assert_eq!((memory.partitions, memory.clients, memory.requests), (2, 2, 200));
    assert!(memory.bytes > 200);
    assert!(host.end_group(group, 1, &mut messages));
    assert_eq!(host.memory(), Memory::default());
}
