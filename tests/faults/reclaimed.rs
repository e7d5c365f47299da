//! The checker on histories of sessions that outlive their service, correct and with a seeded bug.

use std::fs;
use std::path::PathBuf;

use navlocks_tests::check::{Violation, Weight, check};

use crate::seeded::{about, seeds};
use crate::sessions::{Bug, Played, play};

/// One history here is as long as this many of the others.
const LENGTH: u64 = 8;

/// A folder for the tables, in memory if possible, because each start syncs them.
struct Tables(PathBuf);

impl Tables {
    fn new(test: &str) -> Self {
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        Self(parent.join(format!("navlocks-{test}-{}", std::process::id())))
    }

    /// Plays a seed with empty tables.
    fn play(&self, seed: u64, bug: Option<Bug>) -> Played {
        // The folder does not exist the first time.
        let _missing = fs::remove_dir_all(&self.0);
        fs::create_dir_all(&self.0).expect("a folder for tables");
        play(&self.0, seed, bug)
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        // A folder that cannot be removed is no reason to fail.
        let _left = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn sessions_outlive_their_service_and_no_lock_is_lost() {
    let (tables, mut histories, mut all) = (Tables::new("reclaimed"), 0_usize, Weight::default());
    for seed in seeds(LENGTH) {
        let history = tables.play(seed, None).history;
        if let Some(violation) = check(&history).first() {
            panic!("NAVLOCKS_SEED={seed}: {}", about(&history, violation));
        }
        histories += 1;
        all += Weight::of(&history);
    }
    println!("{histories} histories: {all}");
    // The histories had enough to check.
    let Weight { locks, sure, turns, robberies, survivors, .. } = all;
    assert!(sure > locks / 2 && turns > histories && robberies > histories);
    assert!(survivors > histories, "too few locks outlived a service");
}

/// Plays the service with a bug; every finding must come after the bug. Returns how often it struck
/// and how often it was found: clients cannot always see it.
fn hunt(bug: Bug, is_it: fn(&Violation) -> bool) -> (u64, u64) {
    let tables = Tables::new(&format!("{bug:?}"));
    let (mut struck, mut found) = (0, 0);
    for seed in seeds(LENGTH) {
        let played = tables.play(seed, Some(bug));
        let violations = check(&played.history);
        if let Some(violation) = violations.first() {
            assert!(played.struck, "NAVLOCKS_SEED={seed}: {}", about(&played.history, violation));
        }
        struck += u64::from(played.struck);
        found += u64::from(violations.iter().any(is_it));
    }
    println!("{bug:?} struck {struck} times and was found {found} times");
    (struck, found)
}

fn is_of_two(violation: &Violation) -> bool {
    matches!(violation, Violation::TwoHolders { .. } | Violation::LockLost { .. })
}

#[test]
fn grants_before_the_last_claim_are_found() {
    let (struck, found) = hunt(Bug::GrantEarly, is_of_two);
    assert!(found > struck / 8);
}

#[test]
fn claims_after_a_steal_are_found() {
    let (struck, found) = hunt(Bug::ForgetSteal, is_of_two);
    assert!(struck > 0 && found > struck / 8);
}

#[test]
fn sessions_forgotten_by_a_second_kill_are_found() {
    // The bug strikes only where a live client has a lock to miss.
    let (struck, found) = hunt(Bug::ForgetGrace, is_of_two);
    assert!(struck > 0 && found > struck / 4);
}

#[test]
fn orders_lost_by_a_restart_are_found() {
    let (struck, found) =
        hunt(Bug::LoseOrder, |violation| matches!(violation, Violation::OutOfTurn { .. }));
    assert!(struck > 0 && found > struck / 128);
}

#[test]
fn refused_claims_are_found() {
    let (struck, found) =
        hunt(Bug::RefuseClaim, |violation| matches!(violation, Violation::LockLost { .. }));
    assert!(found > struck / 4);
}
