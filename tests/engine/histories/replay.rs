//! The state is a function of the live entries in their order, and of nothing else.

use navlocks_tests::engine::Engine;
use navlocks_tests::history::{Witness, play};
use navlocks_tests::model::Scopes;
use navlocks_tests::model::words::{Answer, Input};
use navlocks_tests::replay::replay;

use super::arbitrary::{any_ops, check, histories};

/// An engine of which only the snapshot is compared.
#[derive(Default)]
struct Replayed(Engine);

impl Witness for Replayed {
    fn see(&mut self, input: &Input, _: &Answer, _: &Scopes) -> Result<(), String> {
        self.0.apply(input).map(drop)
    }

    fn settle(&mut self, _: &Scopes) -> Result<(), String> {
        replay(&self.0.snapshot())
    }
}

/// A node that rebuilds the entries from another source has the same locks.
#[test]
fn replay_gives_the_same_held_set() {
    check("replay_gives_the_same_held_set", histories(10), any_ops(1..=40), |ops| {
        play(ops, &mut [&mut Replayed::default()])
    });
}
