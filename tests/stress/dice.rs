//! The random choices of operations.

use std::env;
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;

use navlocks::{Name, Scope};
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

const OPS: u64 = 1_000_000;

/// Returns a share of all operations, for one test.
pub(crate) fn operations(percent: u64) -> u64 {
    variable("NAVLOCKS_STRESS_OPS").unwrap_or(OPS) * percent / 100
}

/// Returns the seed: `NAVLOCKS_SEED`, or a random one. Prints it.
pub(crate) fn seed() -> u64 {
    let seed = variable("NAVLOCKS_SEED").unwrap_or_else(|| RandomState::new().hash_one("stress"));
    println!("NAVLOCKS_SEED={seed}");
    seed
}

fn variable<T: FromStr<Err: Display>>(name: &str) -> Option<T> {
    let value = env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|error| panic!("{name}={value}: {error}")))
}

pub(crate) struct Dice(TestRng);

impl Dice {
    /// Makes the dice of one thread.
    pub(crate) fn new(seed: u64, thread: usize) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..].copy_from_slice(&(thread as u64 + 1).to_le_bytes());
        Self(TestRng::from_seed(RngAlgorithm::XorShift, &bytes))
    }

    /// Returns a number below `sides`.
    pub(crate) fn roll(&mut self, sides: u32) -> u32 {
        self.0.next_u32() % sides
    }

    /// Returns true once in so many times.
    pub(crate) fn once_in(&mut self, times: u32) -> bool {
        self.roll(times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.roll(of.len() as u32) as usize]
    }

    /// Returns one to three of these names.
    pub(crate) fn scope(&mut self, names: &[&str]) -> Scope {
        let count = 1 + self.roll(3);
        Scope::new((0..count).map(|_| Name::from(*self.pick(names)))).unwrap()
    }
}
