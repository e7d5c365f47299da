//! Random histories of correct services: nothing is found.

use std::collections::BTreeMap;
use std::env;
use std::time::{Duration, Instant};

use navlocks_tests::chaos::{chaos_time, seed};
use navlocks_tests::check::{Violation, Weight};
use navlocks_tests::record::{History, Line, What};

use crate::folder::Tables;
use crate::tally::Tally;
use crate::world::{Finding, Plan, Played, play};

/// How many histories each test plays; `NAVLOCKS_HISTORIES` sets another number.
const HISTORIES: u64 = 300;

/// How long each test of histories plays under `NAVLOCKS_SOAK`; `NAVLOCKS_CHAOS_SECONDS` sets
/// another time.
const SOAK_TIME: Duration = Duration::from_secs(3600);

/// Returns true until a test has played enough.
fn goes_on(played: u64, began: Instant) -> bool {
    if env::var_os("NAVLOCKS_SOAK").is_some() {
        return began.elapsed() < chaos_time(SOAK_TIME);
    }
    let count = env::var("NAVLOCKS_HISTORIES").map_or(HISTORIES, |count| {
        count.parse().unwrap_or_else(|error| panic!("NAVLOCKS_HISTORIES={count}: {error}"))
    });
    played < count
}

/// Returns all lines about the requests of a finding, for a failing test.
pub(crate) fn about(history: &History, finding: &Finding) -> String {
    let Finding::Violation(violation) = finding else { return finding.to_string() };
    let text = violation.to_string();
    let named = |line: &&Line| match &line.what {
        What::Request(number, _) => is_named(&text, &format!("{}#{number}", line.who)),
        _ => true,
    };
    let mut lines: Vec<_> = history.lines.iter().filter(named).collect();
    lines.sort_by_key(|line| line.at);
    let lines: Vec<String> = lines.iter().map(|line| format!("{line:?}")).collect();
    format!("{text}\n{}", lines.join("\n"))
}

fn is_named(text: &str, key: &str) -> bool {
    text.split([' ', ':', ',']).any(|word| word == key)
}

/// Plays random worlds, and prints their faults.
fn play_random(what: &str, mut plan: impl FnMut(u64) -> Plan) {
    let first = seed();
    println!("NAVLOCKS_SEED={first}");
    let (began, mut played, mut all) = (Instant::now(), 0_u64, Weight::default());
    let mut faults: BTreeMap<String, u64> = BTreeMap::new();
    let mut counts = Tally::default();
    while goes_on(played, began) {
        let seed = first.wrapping_add(played);
        let Played { history, findings, faults: happened, tally } = play(plan(seed));
        if let Some(finding) = findings.first() {
            panic!("NAVLOCKS_SEED={seed} NAVLOCKS_HISTORIES=1: {}", about(&history, finding));
        }
        counts += tally;
        happened.into_iter().for_each(|(fault, count)| *faults.entry(fault).or_default() += count);
        all += Weight::of(&history);
        played += 1;
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("{what}: {played} histories, {:.0} a second: {all}", played as f64 / seconds);
    println!("{what}: {counts}; faults: {faults:?}");
    // The histories had enough to check.
    let Weight { locks, sure, turns, robberies, survivors, .. } = all;
    let played = played as usize;
    assert!(played < 100 || (sure > locks / 2 && turns > played && robberies > played));
    assert!(played < 100 || survivors > played, "too few locks outlived a service");
}

#[test]
fn sessions_outlive_their_service_and_no_lock_is_lost() {
    let tables = Tables::new("histories");
    play_random("service", |seed| Plan::random(seed, Some(tables.empty())));
}

#[test]
fn sessions_outlive_nodes_of_their_cluster_and_no_lock_is_lost() {
    play_random("cluster", |seed| Plan::random(seed, None));
}

/// Tokens follow the real clock, so that they differ by their distance only.
#[test]
fn seed_gives_the_same_history_again() {
    let steps = |seed| {
        let history = play(Plan::random(seed, None)).history;
        history
            .lines
            .into_iter()
            .map(|line| match line.what {
                What::Request(number, step) => {
                    let step = format!("{step:?}");
                    let step = step.split("token").next().unwrap_or_default().to_owned();
                    format!("{:?} {} {number} {step}", line.at, line.who)
                }
                what => format!("{:?} {} {what:?}", line.at, line.who),
            })
            .collect::<Vec<String>>()
    };
    for seed in 0..5 {
        assert_eq!(steps(seed), steps(seed), "seed {seed}");
    }
}

/// Returns true if a finding is a violation of this kind.
pub(crate) fn is_violation(finding: &Finding, is_it: fn(&Violation) -> bool) -> bool {
    matches!(finding, Finding::Violation(violation) if is_it(violation))
}
