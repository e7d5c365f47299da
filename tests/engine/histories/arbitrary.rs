//! Random histories, and the runner that plays thousands of them and shrinks one that fails.

use std::env;
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;

use navlocks_tests::history::{Divergence, NAMES, Op, SEATS, Which, Who};
use navlocks_tests::model::words::{Mode, Name, Policy, Scope, Wait};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

/// The number of histories of all tests that compare the engine with the model;
/// `NAVLOCKS_HISTORIES` sets another.
const HISTORIES: u32 = 50_000;

/// Returns a share of all histories, for one test.
pub(crate) fn histories(percent: u32) -> u32 {
    let all = variable("NAVLOCKS_HISTORIES").unwrap_or(HISTORIES);
    (u64::from(all) * u64::from(percent)).div_ceil(100) as u32
}

/// Returns the seed of the random numbers: `NAVLOCKS_SEED`, or a random one.
pub(crate) fn seed() -> u64 {
    variable("NAVLOCKS_SEED").unwrap_or_else(|| RandomState::new().hash_one("histories"))
}

fn variable<T: FromStr<Err: Display>>(name: &str) -> Option<T> {
    let value = env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|error| panic!("{name}={value}: {error}")))
}

pub(crate) fn runner(cases: u32, seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases,
        max_shrink_iters: 100_000,
        // A failing history is reproduced by its seed.
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Plays this many histories. A failure prints the shortest failing history as a story, and how to
/// reproduce it.
pub(crate) fn check(
    test: &str,
    cases: u32,
    histories: impl Strategy<Value = Vec<Op>>,
    property: impl Fn(&[Op]) -> Result<(), Divergence>,
) {
    let seed = seed();
    if let Some((ops, divergence)) = counterexample(runner(cases, seed), histories, property) {
        let all = variable("NAVLOCKS_HISTORIES").unwrap_or(HISTORIES);
        panic!(
            "\n{divergence}\n\nthe ops: {ops:?}\n\nto replay: NAVLOCKS_SEED={seed} NAVLOCKS_HISTORIES={all} \
             cargo test -p navlocks-tests --test engine {test}\n"
        );
    }
}

/// Returns the shortest history found that violates the property.
pub(crate) fn counterexample(
    mut runner: TestRunner,
    histories: impl Strategy<Value = Vec<Op>>,
    property: impl Fn(&[Op]) -> Result<(), Divergence>,
) -> Option<(Vec<Op>, Divergence)> {
    let outcome = runner.run(&histories, |ops| {
        property(&ops).map_err(|divergence| TestCaseError::fail(divergence.objection))
    });
    match outcome {
        Ok(()) => None,
        Err(TestError::Abort(reason)) => panic!("no histories: {reason}"),
        Err(TestError::Fail(_, ops)) => Some(shorten(ops, property)),
    }
}

/// Removes operations that became unnecessary: the runner first removes and then simplifies, only
/// once.
fn shorten(
    mut ops: Vec<Op>,
    property: impl Fn(&[Op]) -> Result<(), Divergence>,
) -> (Vec<Op>, Divergence) {
    let mut divergence = property(&ops).expect_err("it failed a moment ago");
    ops.truncate(divergence.op + 1);
    let mut place = ops.len();
    while place > 0 {
        place -= 1;
        let mut fewer = ops.clone();
        fewer.remove(place);
        if let Err(still) = property(&fewer) {
            fewer.truncate(still.op + 1);
            (ops, divergence) = (fewer, still);
            place = ops.len();
        }
    }
    (ops, divergence)
}

/// Generates histories of all operations.
pub(crate) fn any_ops(
    length: impl Into<proptest::collection::SizeRange>,
) -> impl Strategy<Value = Vec<Op>> {
    use {Mode::*, Wait::*};
    let ways = vec![
        (16, Exclusive, Queue),
        (10, Shared, Queue),
        (4, Limited(2), Queue),
        (6, Limited(3), Queue),
        (1, Exclusive, IfAvailable),
        (1, Shared, IfAvailable),
        (1, Limited(2), IfAvailable),
        (1, Limited(2), Steal),
        (1, Limited(3), StealAll),
        (1, Exclusive, Steal),
        (1, Shared, Steal),
        (1, Exclusive, StealAll),
        (1, Shared, StealAll),
        (1, Exclusive, Overtake),
        (5, Shared, Overtake),
    ];
    let op = prop_oneof![
        48 => request(scope(), ways),
        24 => release(),
        3 => (held(), mode()).prop_map(|(held, mode)| Op::Downgrade(held, mode)),
        2 => held().prop_map(Op::Expire),
        5 => abort(),
        2 => seat().prop_map(|seat| Op::Terminate(Who::Seat(seat))),
        2 => name().prop_map(Op::ForceRelease),
        8 => (who(Who::Waiting), policy()).prop_map(|(who, policy)| Op::Suspend(who, policy)),
        8 => who(Who::Asleep).prop_map(Op::Resume),
        2 => Just(Op::Query),
        1 => any::<u8>().prop_map(Op::AdvanceToken),
        2 => any::<bool>().prop_map(Op::Polling),
        2 => Just(Op::Poll),
    ];
    vec(op, length)
}

/// Generates histories of the operations that the standard and its first draft share, one name a
/// request.
pub(crate) fn single_name_ops(waits: &[Wait]) -> impl Strategy<Value = Vec<Op>> + use<> {
    let way = |&wait| {
        let weight = if wait == Wait::Queue { 6 } else { 1 };
        [(weight, Mode::Exclusive, wait), (weight, Mode::Shared, wait)]
    };
    let ways = waits.iter().flat_map(way).collect();
    let op = prop_oneof![
        10 => request(name().prop_map(|name| Scope::from([name])), ways),
        6 => release(),
        3 => abort(),
        1 => seat().prop_map(|seat| Op::Terminate(Who::Seat(seat))),
        1 => Just(Op::Query),
    ];
    vec(op, 1..=30)
}

/// The weight of a mode and a wait in a history.
type Way = (u32, Mode, Wait);

fn request(scope: impl Strategy<Value = Scope>, ways: Vec<Way>) -> impl Strategy<Value = Op> {
    let ways = ways.into_iter().map(|(weight, mode, wait)| (weight, Just((mode, wait))));
    (seat(), scope, Union::new_weighted(ways.collect()))
        .prop_map(|(seat, scope, (mode, wait))| Op::Request { seat, scope, mode, wait })
}

fn release() -> impl Strategy<Value = Op> {
    held().prop_map(Op::Release)
}

fn mode() -> impl Strategy<Value = Mode> {
    select(vec![Mode::Exclusive, Mode::Limited(2), Mode::Limited(3), Mode::Shared])
}

/// Chooses a held request, most often.
fn held() -> impl Strategy<Value = Which> {
    prop_oneof![
        8 => any::<u8>().prop_map(Which::Held),
        1 => any::<u8>().prop_map(Which::Pending),
        1 => any::<u8>().prop_map(Which::Ever),
    ]
}

fn abort() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => any::<u8>().prop_map(Which::Pending),
        1 => any::<u8>().prop_map(Which::Held),
        1 => any::<u8>().prop_map(Which::Ever),
    ]
    .prop_map(Op::Abort)
}

fn seat() -> impl Strategy<Value = u8> {
    0..SEATS as u8
}

/// Chooses any client, or one with a special state.
fn who(some: fn(u8) -> Who) -> impl Strategy<Value = Who> {
    prop_oneof![1 => seat().prop_map(Who::Seat), 3 => seat().prop_map(some)]
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![2 => Just(Policy::EvictOnContention), 1 => Just(Policy::ReleaseAtOnce)]
}

/// Chooses a name, the first ones more often, so that requests conflict.
fn name() -> impl Strategy<Value = Name> {
    let [a, b, c, d, e] = NAMES;
    select(vec![a, a, a, a, a, b, b, c, d, e])
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![
        4 => btree_set(name(), 1..=1),
        3 => btree_set(name(), 1..=2),
        2 => btree_set(name(), 1..=4),
    ]
}
