//! Many sessions in a cluster: messages, writes to etcd and waits, with their growth.
//!
//! Time is virtual, so that the waits are those of the protocol: of leases, pauses and round trips,
//! and not of processors. `NAVLOCKS_SESSIONS` sets the sizes; without it the size is small, and
//! under `NAVLOCKS_SOAK` up to 100,000.

use std::env;

use crate::errands::{Errand, Errands};
use crate::plan::LEASE_OF_MANY;
use crate::tally::Tally;
use crate::world::{Fault, Plan, play};

const SMALL: &str = "200";
const GROWTH: &str = "1000 10000 100000";

/// When something happens to the cluster.
const STRUCK: u64 = 10_000;
/// Between two nodes of a rolling restart.
const NEXT: u64 = 15_000;
/// So long locks are held, and so long a node stays away.
const LONG: u64 = 60_000;

fn sizes() -> Vec<usize> {
    let usual = if env::var_os("NAVLOCKS_SOAK").is_some() { GROWTH } else { SMALL };
    let sizes = env::var("NAVLOCKS_SESSIONS").unwrap_or_else(|_| usual.to_owned());
    let sizes = sizes.split_whitespace().map(|size| size.parse().expect("a number of sessions"));
    sizes.collect()
}

/// Plays a cluster in which each session holds a lock, and asks for another one at these times.
fn play_many(sessions: usize, faults: Vec<(u64, Fault)>, asks: &[u64]) -> Tally {
    let tasks = |number: usize| {
        let held =
            Errand { looks: 0, ..Errand::new(number as u64 % 4_000, &format!("l{number}"), LONG) };
        let ask = |at: &u64| Errand { looks: 0, ..Errand::new(*at, &format!("m{number}"), 0) };
        let asked = asks.iter().map(ask).collect::<Vec<_>>();
        [vec![held], asked]
            .map(|errands| Errands::Script { errands: errands.into(), check_every: LONG / 4 })
    };
    play(Plan::of_many(sessions, faults, tasks)).tally
}

#[test]
fn sessions_of_a_large_cluster_keep_their_locks() {
    println!(
        "| event | sessions | messages | a session | dials | transactions | operations | last grant |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for sessions in sizes() {
        let calm = play_many(sessions, Vec::new(), &[STRUCK]);
        let killed = (STRUCK, Fault::KillNode { node: 0, down: LONG });
        let rolling = (0..3).map(|node| (STRUCK + NEXT * node as u64, Fault::DrainNode { node }));
        let outage = (STRUCK, Fault::LoseQuorum { time: LEASE_OF_MANY / 4 });
        let asks: Vec<u64> = (0..3).map(|node| STRUCK + NEXT * node).collect();
        for (event, faults, asks) in [
            ("fail-over", vec![killed], &asks[..1]),
            ("rolling restart", rolling.collect(), &asks[..]),
            ("quorum loss", vec![outage], &asks[..1]),
        ] {
            let tally = play_many(sessions, faults, asks);
            let more = |all: u64, before: u64| all.saturating_sub(before);
            let messages = more(tally.messages, calm.messages);
            println!(
                "| {event} | {sessions} | {messages} | {:.1} | {} | {} | {} | {:.1} s |",
                messages as f64 / sessions as f64,
                more(tally.dials, calm.dials),
                more(tally.transactions, calm.transactions),
                more(tally.operations, calm.operations),
                more(tally.last_grant, *asks.last().expect("a time")) as f64 / 1000.0,
            );
            assert_eq!(tally.lost, 0, "{event} of {sessions} sessions loses no lock");
            if event == "quorum loss" {
                assert!(tally.operations <= calm.operations, "no slot has another owner");
            }
        }
    }
}

#[test]
fn outage_that_is_longer_than_leases_loses_locks_by_them_and_is_over_with_it() {
    let (sessions, time) = (200, 2 * LEASE_OF_MANY);
    // The other lock is asked for while there is no quorum.
    let outage = vec![(STRUCK, Fault::LoseQuorum { time })];
    let tally = play_many(sessions, outage, &[STRUCK + time / 2]);
    assert_eq!((tally.lost, tally.lapsed), (sessions as u64, sessions as u64));
    let (back, last) = (STRUCK + time, tally.last_grant);
    assert!((back..back + 1_000).contains(&last), "quorum at {back}, the last grant at {last}");
}
