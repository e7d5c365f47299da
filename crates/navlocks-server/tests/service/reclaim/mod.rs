//! How sessions go on with their locks when their service is started again.

mod claims;
mod holders;
mod sessions;
mod steals;
mod waiters;

use std::time::Duration;

use navlocks_server::Config;
use navlocks_wire::{LossCause, Over, Reply, ToClient, UnclaimedSession, Welcome};

use crate::client::Client;
use crate::running::Running;

fn short_leases(config: &mut Config) {
    config.limits.lease_min = Duration::from_millis(50);
    config.limits.lease_default = Duration::from_millis(300);
}

fn restart(service: Running) -> Running {
    Running::again(service.kill(), |_| {})
}

fn request(id: u64, name: &str) -> String {
    format!(r#"{{"request":{{"id":{id},"names":["{name}"]}}}}"#)
}

fn lost(id: u64, cause: LossCause) -> ToClient {
    ToClient::Over(Over::lost(id, cause))
}

/// Returns the sessions that a service waits for.
fn recovery(client: &mut Client) -> Vec<UnclaimedSession> {
    client.say(r#"{"ask":{"id":90,"question":{"locks":"unclaimed"}}}"#);
    match client.hear() {
        ToClient::Answer(answer) => match answer.reply {
            Reply::Unclaimed(sessions) => sessions,
            other => panic!("another answer: {other:?}"),
        },
        other => panic!("no answer: {other:?}"),
    }
}

/// A holder of `a` whose service was killed and started again.
fn orphaned() -> (Running, Welcome, u64, Client) {
    let service = Running::start();
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    let token = holder.hold(1, "a");
    (restart(service), welcome, token, holder)
}
