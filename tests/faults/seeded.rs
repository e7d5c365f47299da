//! The checker on histories of a correct service, and of the same service with a seeded bug.

use std::env;

use navlocks_tests::chaos::seed;
use navlocks_tests::check::{Key, Violation, Weight, check};
use navlocks_tests::record::{Deed, History, Line, Step, What};

use crate::simulation::{Bug, Played, play};

/// How many seeds each test plays; `NAVLOCKS_HISTORIES` sets another number.
const SEEDS: u64 = 2_000;

/// Returns the seeds of a test whose histories are this many times as long as usual.
pub(crate) fn seeds(length: u64) -> impl Iterator<Item = u64> {
    let first = seed();
    println!("NAVLOCKS_SEED={first}");
    let count = env::var("NAVLOCKS_HISTORIES").map_or(SEEDS, |count| {
        count.parse().unwrap_or_else(|error| panic!("NAVLOCKS_HISTORIES={count}: {error}"))
    });
    (0..count.div_ceil(length)).map(move |number| first.wrapping_add(number))
}

/// Returns all lines about the requests of a violation, for a failing test.
pub(crate) fn about(history: &History, violation: &Violation) -> String {
    let named = |line: &&Line| match &line.what {
        What::Request(number, _) => {
            keys(violation).iter().any(|key| key.who == line.who && key.number == *number)
        }
        _ => true,
    };
    let mut lines: Vec<_> = history.lines.iter().filter(named).collect();
    lines.sort_by_key(|line| line.at);
    let lines: Vec<String> = lines.iter().map(|line| format!("{line:?}")).collect();
    format!("{violation}\n{}", lines.join("\n"))
}

fn keys(violation: &Violation) -> Vec<Key> {
    match violation {
        Violation::TwoHolders { first, second, .. }
        | Violation::TokenRepeated { first, second, .. } => vec![first.clone(), second.clone()],
        Violation::OutOfTurn { waiting, overtaker, .. } => {
            vec![waiting.clone(), overtaker.clone()]
        }
        Violation::LostWaiters { waiters } => waiters.clone(),
        Violation::TooManyHolders { last, .. } => vec![last.clone()],
        Violation::TokenShrank { earlier, later, .. } => vec![earlier.clone(), later.clone()],
        Violation::Nonsense { request, .. } | Violation::LockLost { request, .. } => {
            vec![request.clone()]
        }
    }
}

#[test]
fn correct_service_has_no_violation() {
    let (mut histories, mut all) = (0_usize, Weight::default());
    for seed in seeds(1) {
        let history = play(seed, None).history;
        if let Some(violation) = check(&history).first() {
            panic!("NAVLOCKS_SEED={seed}: {}", about(&history, violation));
        }
        histories += 1;
        all += Weight::of(&history);
    }
    println!("{histories} histories: {all}");
    // The histories had enough to check.
    let Weight { locks, sure, turns, robberies, .. } = all;
    assert!(sure > locks / 2 && turns > histories / 4 && robberies > histories);
}

/// Plays the service with a bug; every finding must be of this kind and about the affected request.
/// Returns how often it struck and how often it was found: clients cannot always see it.
fn hunt(bug: Bug, is_it: fn(&Violation, &Key) -> bool) -> (u64, u64) {
    let (mut struck, mut found) = (0, 0);
    for seed in seeds(1) {
        let played = play(seed, Some(bug));
        let violations = check(&played.history);
        for violation in &violations {
            let right = played.struck.as_ref().is_some_and(|victim| is_it(violation, victim));
            assert!(
                right,
                "NAVLOCKS_SEED={seed}: {:?} was struck, but {}",
                played.struck,
                about(&played.history, violation)
            );
        }
        struck += u64::from(played.struck.is_some());
        found += u64::from(!violations.is_empty());
    }
    println!("{bug:?} struck {struck} times and was found {found} times");
    (struck, found)
}

#[test]
fn two_holders_are_found() {
    let (struck, found) = hunt(Bug::GrantTwo, |violation, victim| match violation {
        Violation::TwoHolders { first, second, .. } => [first, second].contains(&victim),
        // The second holder may have overtaken a waiter as well.
        Violation::OutOfTurn { overtaker, .. } => overtaker == victim,
        _ => false,
    });
    assert!(found > struck / 4);
}

#[test]
fn lost_waiters_are_found() {
    let (struck, found) = hunt(
        Bug::DropGrant,
        |violation, victim| matches!(violation, Violation::LostWaiters { waiters } if waiters.contains(victim)),
    );
    assert!(found > struck / 8);
}

/// A lost waiter that is alive in the end is always found; others have left without proof.
#[test]
fn live_lost_waiters_are_always_found() {
    for seed in seeds(1) {
        let Played { history, struck } = play(seed, Some(Bug::DropGrant));
        let Some(victim) = struck else { continue };
        let of_victim = history.lines.iter().filter(|line| line.who == victim.who);
        let mut steps = of_victim.filter_map(|line| match &line.what {
            What::Request(number, step) if *number == victim.number => Some(step),
            _ => None,
        });
        let waits = matches!(steps.next_back(), Some(Step::Asked { .. } | Step::Pending { .. }));
        let killed = What::Deed(victim.who.clone(), Deed::Killed);
        let there = waits && !history.lines.iter().any(|line| line.what == killed);
        assert_eq!(check(&history).len(), usize::from(there), "NAVLOCKS_SEED={seed}: {victim}");
    }
}

#[test]
fn wrong_order_is_found() {
    let (struck, found) = hunt(
        Bug::LoseSeat,
        |violation, victim| matches!(violation, Violation::OutOfTurn { waiting, .. } if waiting == victim),
    );
    assert!(found > struck / 4);
}

#[test]
fn repeated_tokens_are_found() {
    let (struck, found) = hunt(
        Bug::RepeatToken,
        |violation, victim| matches!(violation, Violation::TokenRepeated { first, second, .. } if [first, second].contains(&victim)),
    );
    assert!(found > struck / 2);
}

#[test]
fn shrinking_tokens_are_found() {
    let (struck, found) = hunt(
        Bug::ShrinkToken,
        |violation, victim| matches!(violation, Violation::TokenShrank { later, .. } if later == victim),
    );
    assert!(found > struck / 2);
}
