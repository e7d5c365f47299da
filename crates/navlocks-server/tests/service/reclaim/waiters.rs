//! Waiters: their order after a restart.

use navlocks_wire::Welcome;

use super::{request, restart};
use crate::client::Client;
use crate::running::Running;

#[test]
fn waiters_keep_their_order_over_a_kill() {
    let service = Running::start();
    let mut clients: Vec<(Client, Welcome)> =
        (0..6).map(|_| Client::unix_welcome(service.unix())).collect();
    let token = clients[0].0.hold(1, "a");
    for (client, _) in &mut clients[1..] {
        client.say(request(1, "a"));
        client.settle();
    }
    let service = restart(service);
    // The successor hears of them in another order, with a stranger in between.
    let mut last = Client::unix(service.unix());
    last.say(request(1, "a"));
    last.settle();
    let claim =
        |number: usize, text: &str| Client::claim(service.unix(), &clients[number].1, &[text]);
    let waiting = r#""id":1,"names":["a"]"#;
    let mut waiters: Vec<(usize, Client)> =
        [5, 3, 1, 2, 4].into_iter().map(|number| (number, claim(number, waiting))).collect();
    let mut holder = claim(0, &format!(r#"{waiting},"token":{token}"#));
    holder.say(r#"{"end":1}"#);
    waiters.sort_by_key(|(number, _)| *number);
    let mut largest = token;
    for (_, waiter) in &mut waiters {
        let token = waiter.granted(1);
        assert!(token > largest);
        largest = token;
        waiter.say(r#"{"end":1}"#);
    }
    assert!(last.granted(1) > largest);
}

#[test]
fn waiter_that_does_not_come_back_holds_back_only_later_requests() {
    let service = Running::start();
    let mut clients: Vec<(Client, Welcome)> =
        (0..3).map(|_| Client::unix_welcome(service.unix())).collect();
    let token = clients[0].0.hold(1, "a");
    for (client, _) in &mut clients[1..] {
        client.say(request(1, "a"));
        client.settle();
    }
    let service = restart(service);
    let waiting = r#""id":1,"names":["a"]"#;
    let held = format!(r#"{waiting},"token":{token}"#);
    let mut holder = Client::claim(service.unix(), &clients[0].1, &[&held]);
    let mut first = Client::claim(service.unix(), &clients[1].1, &[waiting]);
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    holder.say(r#"{"end":1}"#);
    // The second waiter has not come back, and was behind the first one in any case.
    first.granted(1);
    first.say(r#"{"end":1}"#);
    first.settle();
    other.settle();
    let mut second = Client::claim(service.unix(), &clients[2].1, &[waiting]);
    second.granted(1);
    second.say(r#"{"end":1}"#);
    other.granted(1);
}
