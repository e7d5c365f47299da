//! The dice, and the environment variables that set them.

use std::env;
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::time::Duration;

/// Dice that give the same numbers for the same seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Makes the dice of one of several players.
    pub fn new(seed: u64, player: u64) -> Self {
        let mut seed = Self(seed);
        Self(seed.next() ^ Self(player).next())
    }

    /// SplitMix64: small, and good enough for dice.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `sides`, which is at least one.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.next() % sides
    }

    /// Returns true once in so many times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.roll(times) == 0
    }

    /// Returns one of these, if there is any.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { of.get(self.roll(of.len() as u64) as usize) }
    }

    /// Returns a duration up to this, short ones more often.
    pub fn up_to(&mut self, longest: Duration) -> Duration {
        longest.mul_f64(self.roll(1001) as f64 / 1000.0 * self.roll(1001) as f64 / 1000.0)
    }

    /// Returns one to three of these names, in order and without duplicates.
    pub fn names<T: Clone + Ord>(&mut self, all: &[T]) -> Vec<T> {
        let count = 1 + self.roll(6) / 3 + self.roll(6) / 5;
        let mut names: Vec<T> = (0..count).filter_map(|_| self.pick(all)).cloned().collect();
        names.sort();
        names.dedup();
        names
    }
}

/// Returns the seed: `NAVLOCKS_SEED`, or a random one. The caller prints it.
pub fn seed() -> u64 {
    variable("NAVLOCKS_SEED").unwrap_or_else(|| RandomState::new().hash_one("chaos"))
}

/// Returns how long to disturb: `NAVLOCKS_CHAOS_SECONDS`, or the usual time.
pub fn chaos_time(usual: Duration) -> Duration {
    variable("NAVLOCKS_CHAOS_SECONDS").map_or(usual, Duration::from_secs)
}

/// Reads a variable. Panics if its value is malformed, so that the mistake shows.
fn variable<T: FromStr<Err: Display>>(name: &str) -> Option<T> {
    let value = env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|error| panic!("{name}={value}: {error}")))
}
