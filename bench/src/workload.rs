//! Inputs that are the same for every side and every run.

use std::sync::OnceLock;

/// The contended name: twelve bytes, like all the others.
pub(crate) const HOT: &str = "the-hot-name";

/// Distinct names of twelve bytes, packed so that reading them is cheap for every side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    text: &'static str,
}

/// The length of every name here; the memory targets assume it.
const NAME_BYTES: usize = 12;

/// The number of names of the largest case.
const NAMES_MAX: usize = 1_000_000;

impl Names {
    /// Returns the first names; all cases share one copy.
    pub(crate) fn first(count: usize) -> Self {
        static TEXT: OnceLock<String> = OnceLock::new();
        let text = TEXT.get_or_init(|| (0..NAMES_MAX).map(|n| format!("lock{n:08}")).collect());
        Self { text: &text[..count * NAME_BYTES] }
    }

    pub(crate) fn len(self) -> usize {
        self.text.len() / NAME_BYTES
    }

    #[inline]
    pub(crate) fn get(self, number: usize) -> &'static str {
        &self.text[number * NAME_BYTES..(number + 1) * NAME_BYTES]
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = &'static str> {
        (0..self.len()).map(move |number| self.get(number))
    }
}

/// Puts the items in a random-looking order that is the same every time.
pub(crate) fn shuffle<T>(items: &mut [T]) {
    // The high bits of a linear congruential generator suffice to defeat prefetching.
    let mut state: u64 = 0x9E37_79B9_7F4A_7C15;
    for last in (1..items.len()).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(last, (state >> 33) as usize % (last + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct() {
        let names = Names::first(1000);
        let mut all: Vec<&str> = names.iter().collect();
        all.dedup();
        assert_eq!(all.len(), 1000);
        assert_eq!(names.get(999), "lock00000999");
    }

    #[test]
    fn shuffling_moves_and_keeps_every_item() {
        let mut items: Vec<usize> = (0..1000).collect();
        shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert!(items.into_iter().eq(0..1000));
    }
}
