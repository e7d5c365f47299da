//! Seeded bugs. Each has a script in which it strikes for every seed, so that it is found by
//! construction: seeds change the times of messages only.

use navlocks_tests::check::Violation;
use navlocks_tests::record::{Mode, Wait};

use crate::bug::Bug;
use crate::errands::Errand;
use crate::folder::Tables;
use crate::histories::{about, is_violation};
use crate::plan::Script;
use crate::services::spoiler::POISON;
use crate::world::Fault;
use crate::world::{Finding, Plan, play};

/// Each script is played with so many seeds.
const SEEDS: u64 = 10;

fn two_holders(finding: &Finding) -> bool {
    is_violation(finding, |it| matches!(it, Violation::TwoHolders { .. }))
}

fn lock_lost(finding: &Finding) -> bool {
    is_violation(finding, |it| matches!(it, Violation::LockLost { .. }))
}

fn out_of_turn(finding: &Finding) -> bool {
    is_violation(finding, |it| matches!(it, Violation::OutOfTurn { .. }))
}

/// A lock that the first client holds from the beginning.
fn held(name: &str, hold: u64) -> Vec<Errand> {
    vec![Errand::new(10, name, hold)]
}

fn waits(at: u64) -> Vec<Errand> {
    vec![Errand::new(at, "a", 500)]
}

fn of_kind(at: u64, mode: Mode, wait: Wait) -> Vec<Errand> {
    vec![Errand { mode, wait, ..Errand::new(at, "a", 500) }]
}

fn killed(at: u64) -> (u64, Fault) {
    (at, Fault::KillNode { node: 0, down: 100 })
}

/// All nodes die at this time, so that each slot has another owner.
fn all_killed(at: u64) -> Vec<(u64, Fault)> {
    (0..3).map(|node| (at, Fault::KillNode { node, down: 200 })).collect()
}

/// Plays a script with and without its bug.
fn hunt(bug: Bug, script: &Script, is_it: fn(&Finding) -> bool) {
    let tables = Tables::new(&format!("{bug:?}"));
    let (mut struck, mut found) = (0, 0);
    for seed in 0..SEEDS {
        let plan = |bug| {
            let folder = (!script.is_cluster).then(|| tables.empty());
            Plan::script(seed, folder, bug, script)
        };
        let played = play(plan(None));
        if let Some(finding) = played.findings.first() {
            panic!("{bug:?}, seed {seed}, without the bug: {}", about(&played.history, finding));
        }
        let plan = plan(Some(bug));
        let seeded = plan.bug.clone();
        let findings = play(plan).findings;
        struck += u64::from(seeded.has_struck());
        found += u64::from(findings.iter().any(is_it));
    }
    println!("{bug:?} struck in {struck} of {SEEDS} histories and was found in {found}");
    assert_eq!((struck, found), (SEEDS, SEEDS), "{bug:?} struck, and was found");
}

#[test]
fn wrong_grants_are_found() {
    let two = Script::of([held("a", 5000), waits(800)]);
    hunt(Bug::GrantTwo, &two, two_holders);
    let lost = |it: &Finding| is_violation(it, |it| matches!(it, Violation::LostWaiters { .. }));
    hunt(Bug::DropGrant, &two, lost);
    let later = of_kind(3000, Mode::Shared, Wait::Queue);
    let three = Script::of([held("a", 5000), waits(800), later]);
    hunt(Bug::Overtake, &three, out_of_turn);
}

#[test]
fn wrong_tokens_are_found() {
    let script = Script::of([held("a", 100), vec![Errand::new(1000, "b", 100)]]);
    let repeated =
        |it: &Finding| is_violation(it, |it| matches!(it, Violation::TokenRepeated { .. }));
    hunt(Bug::RepeatToken, &script, repeated);
    let shrank = |it: &Finding| is_violation(it, |it| matches!(it, Violation::TokenShrank { .. }));
    hunt(Bug::ShrinkToken, &script, shrank);
}

#[test]
fn wrong_recoveries_are_found() {
    let holders = || Script::of([held("a", 6000), held("b", 6000)]);
    hunt(Bug::GrantEarly, &holders().with(vec![killed(1000)]), lock_lost);
    hunt(Bug::RefuseClaim, &holders().with(vec![killed(1000)]), lock_lost);
    hunt(Bug::ForgetGrace, &holders().with(vec![killed(1000), killed(1105)]), lock_lost);
    hunt(Bug::LoseTables, &holders().with(vec![(1000, Fault::FillDisk { down: 100 })]), lock_lost);
    let thief = of_kind(1000, Mode::Exclusive, Wait::Steal);
    let thief = thief.into_iter().map(|it| Errand { hold: 5000, ..it }).collect();
    let asleep = (900, Fault::StopClient { client: 0, time: 1500 });
    let stolen = Script::of([held("a", 6000), thief]).with(vec![asleep, killed(1400)]);
    hunt(Bug::ForgetSteal, &stolen, lock_lost);
    let queue = Script::of([held("a", 6000), waits(800), waits(2400)]).with(vec![killed(4000)]);
    hunt(Bug::LoseOrder, &queue, out_of_turn);
    let many = ["a", "b", "c", "d", "e"].map(|name| Errand::new(10, name, 6000)).to_vec();
    hunt(Bug::LongClaim, &Script::of([many]).with(vec![(1000, Fault::Cut(0))]), lock_lost);
}

#[test]
fn wrong_ends_are_found() {
    let two = || Script::of([held("a", 6000), waits(800)]);
    hunt(Bug::CloseIsBye, &two().with(vec![(1500, Fault::CloseFrame(0))]), lock_lost);
    let force = of_kind(1600, Mode::Exclusive, Wait::Force);
    let third = vec![Errand::new(800, "a", 6000)];
    let deaf = (1500, Fault::Deafen { client: 1, time: 600 });
    hunt(
        Bug::RepeatForce,
        &Script::of([held("a", 6000), force, third]).with(vec![deaf]),
        lock_lost,
    );
    let poison = Script::of([vec![Errand::new(500, POISON, 100)]]);
    hunt(Bug::RepeatFault, &poison, |finding| matches!(finding, Finding::Loop(_)));
    let second = waits(800).into_iter().map(|it| Errand { client: 1, ..it }).collect();
    hunt(Bug::WrongPartition, &Script::of([held("a", 4000), second]), two_holders);
}

#[test]
fn wrong_limits_downgrades_and_holds_are_found() {
    let two_at_a_time =
        |at| vec![Errand { mode: Mode::Limited(2), looks: 0, ..Errand::new(at, "a", 9000) }];
    let reader = of_kind(5000, Mode::Shared, Wait::Queue);
    let limited = Script::of([two_at_a_time(10), two_at_a_time(400), reader]);
    let too_many =
        |it: &Finding| is_violation(it, |it| matches!(it, Violation::TooManyHolders { .. }));
    hunt(Bug::ForgetLimit, &limited.with(vec![killed(1000)]), too_many);
    let downgraded = vec![Errand { shared_after: Some(1500), ..Errand::new(10, "a", 6000) }];
    hunt(Bug::ReleaseToDowngrade, &Script::of([downgraded, waits(800)]), two_holders);
    let brief = vec![Errand { max_hold: Some(6000), ..Errand::new(10, "a", 30_000) }];
    let asleep = (5500, Fault::StopClient { client: 0, time: 7000 });
    let over = |it: &Finding| matches!(it, Finding::HeldTooLong(_));
    let faults = all_killed(3000).into_iter().chain([asleep]).collect();
    hunt(Bug::RestartHold, &Script::of([brief, waits(800)]).cluster().with(faults), over);
}

#[test]
fn effects_of_strangers_are_found() {
    let stranger = |it: &Finding| matches!(it, Finding::Stranger(_));
    let claim = Script::of([held("a", 6000)]).with(vec![killed(1000)]).strange();
    hunt(Bug::StrangerEndsClaim, &claim, stranger);
    hunt(Bug::StrangerMovesSlots, &Script::of([held("a", 6000)]).cluster().strange(), stranger);
}

#[test]
fn wrong_fail_overs_are_found() {
    let holder = || Script::of([held("a", 9000)]).cluster();
    hunt(Bug::ForgetSessions, &holder().with(all_killed(4000)), lock_lost);
    let kept = |it: &Finding| matches!(it, Finding::Kept(_));
    hunt(Bug::KeepEnded, &Script::of([held("a", 100)]).cluster(), kept);
}
