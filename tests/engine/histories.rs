//! Random histories: the engine and the naive models must produce the same events.
//!
//! `NAVLOCKS_HISTORIES` sets how many (50,000), `NAVLOCKS_SEED` which ones; a failure prints both.

pub(crate) mod arbitrary;
mod shards;
mod replay;
mod fast_path;

use std::fs;
use std::path::Path;

use navlocks_tests::engine::Engine;
use navlocks_tests::history::{History, Op, Witness, play, run};
use navlocks_tests::model::Scopes;
use navlocks_tests::model::words::Wait::{IfAvailable, Queue, Steal, StealAll};
use navlocks_tests::model::words::{Answer, Input};
use navlocks_tests::single::SingleNamed;
use navlocks_tests::tally::{KINDS, Tally};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use self::arbitrary::{any_ops, check, counterexample, histories, runner, single_name_ops};

#[test]
fn x20_short_histories_follow_the_model() {
    check("x20_short_histories_follow_the_model", histories(60), any_ops(1..=14), run);
}

#[test]
fn long_histories_follow_the_model() {
    check("long_histories_follow_the_model", histories(40), any_ops(1..=40), run);
}

#[test]
fn histories_from_bytes_follow_the_model() {
    // Three bytes are one operation, so that shrinking removes whole operations.
    let bytes = proptest::collection::vec(any::<[u8; 3]>(), 0..=40);
    let ops = bytes.prop_map(|bytes| History::from_bytes(bytes.as_flattened()).ops);
    check("histories_from_bytes_follow_the_model", histories(10), ops, run);
}

/// D21: for single names, the standard's head of a queue grants the same as the intersection of
/// scopes.
#[test]
fn single_names_follow_the_standard() {
    check(
        "single_names_follow_standard",
        histories(20),
        single_name_ops(&[Queue, IfAvailable, Steal]),
        |ops| play(ops, &mut [&mut Engine::new(), &mut SingleNamed::standard()]),
    );
}

/// D06, P11: the steal of the draft with `acquire` empties the queue; otherwise its scan of the
/// queue grants the same.
#[test]
fn single_names_follow_the_draft_with_acquire() {
    check(
        "single_names_follow_the_draft_with_acquire",
        histories(20),
        single_name_ops(&[Queue, IfAvailable, StealAll]),
        |ops| play(ops, &mut [&mut Engine::new(), &mut SingleNamed::scan()]),
    );
}

/// D21: without steal, all texts of the lineage grant the same.
#[test]
fn d21_histories_without_steal_agree_in_all_texts() {
    check(
        "d21_histories_without_steal_agree_in_all_texts",
        histories(20),
        single_name_ops(&[Queue, IfAvailable]),
        |ops| {
            play(
                ops,
                &mut [&mut Engine::new(), &mut SingleNamed::standard(), &mut SingleNamed::scan()],
            )
        },
    );
}

/// An engine that ignores every abort.
#[derive(Default)]
struct Deaf(Engine);

impl Witness for Deaf {
    fn see(&mut self, input: &Input, answer: &Answer, model: &Scopes) -> Result<(), String> {
        if matches!(input, Input::Abort(_)) { Ok(()) } else { self.0.see(input, answer, model) }
    }

    fn settle(&mut self, model: &Scopes) -> Result<(), String> {
        self.0.settle(model)
    }
}

/// Shows that the properties above catch a wrong engine, and that people can read the failure.
#[test]
fn wrong_engine_is_caught_with_a_short_history() {
    let wrong = |ops: &[Op]| play(ops, &mut [&mut Deaf::default()]);
    let found = counterexample(runner(1_000, 1), any_ops(1..=40), wrong);
    let (_, divergence) = found.expect("a deaf engine must be caught");
    let story = "   1. c0 joins; c0 requests exclusive {a} in turn as r0: granted, token 1
   2. c0 requests exclusive {a} in turn as r1: pending
   3. abort r1
";
    assert_eq!(divergence.story, story);
    assert!(divergence.objection.starts_with("snapshot:"), "{}", divergence.objection);
}

/// Shows that every kind of event happens in the histories.
#[test]
fn random_histories_have_every_kind_of_event() {
    let mut tally = Tally::default();
    let mut runner = runner(0, 2_000);
    let strategy = any_ops(1..=40);
    for _ in 0..2_000 {
        let ops: Vec<Op> = strategy.new_tree(&mut runner).expect("histories").current();
        play(&ops, &mut [&mut tally.witness()]).expect("a tally never objects");
    }
    for kind in KINDS {
        println!("{:6} {kind}", tally.count(kind));
    }
    for kind in KINDS {
        assert!(tally.count(kind) >= 10, "{kind}: {} times in 2,000 histories", tally.count(kind));
    }
}

/// Plays the corpus of the fuzzer without a fuzzer.
#[test]
fn fuzz_corpus_follows_the_model() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/verbs");
    let mut played = 0;
    for file in fs::read_dir(&corpus).expect("the corpus is part of the repository") {
        let file = file.expect("a directory entry").path();
        let history = History::from_bytes(&fs::read(&file).expect("a corpus file"));
        if let Err(divergence) = run(&history.ops) {
            panic!("{}:\n{divergence}", file.display());
        }
        played += 1;
    }
    assert!(played >= 12, "only {played} files in {}", corpus.display());
}
