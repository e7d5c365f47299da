//! Storage in which each value keeps its position, and free positions are reused.
//!
//! Written by hand because every input uses it many times: values are written and read in place,
//! and no tag is checked. The values themselves show which positions are free.

use alloc::vec::Vec;
use core::ops::{Index as IndexTrait, IndexMut};

use crate::id::{Index, NIL};

#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<T>,
    /// The free positions; the last freed is reused first, while it is in the cache.
    free: Vec<Index>,
    /// The largest number of positions.
    limit: Index,
}

impl<T> Slots<T> {
    pub(crate) const fn new() -> Self {
        Self::with_limit(NIL)
    }

    pub(crate) const fn with_limit(limit: Index) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), limit }
    }

    /// Returns how many positions are taken.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns how many positions there are, taken and free.
    pub(crate) fn positions(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Returns the position that is taken next.
    #[inline]
    pub(crate) fn vacant(&self) -> Index {
        match self.free.last() {
            Some(&index) => index,
            None => {
                let limit = self.limit;
                assert!(
                    self.slots.len() < limit as usize,
                    "there is room for {limit} of each kind"
                );
                self.slots.len() as Index
            }
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> Index {
        let index = self.vacant();
        match self.reuse() {
            Some((_, slot)) => *slot = value,
            None => self.slots.push(value),
        }
        index
    }

    /// Takes a position and returns its old value, or `free`: for a value that is cheaper to
    /// overwrite than to move.
    #[inline]
    pub(crate) fn occupy(&mut self, free: fn() -> T) -> (Index, &mut T) {
        let index = self.vacant();
        if self.free.pop().is_none() {
            self.slots.push(free());
        }
        (index, &mut self.slots[index as usize])
    }

    /// Takes a free position, if there is one, and returns its old value.
    #[inline]
    pub(crate) fn reuse(&mut self) -> Option<(Index, &mut T)> {
        let index = self.free.pop()?;
        Some((index, &mut self.slots[index as usize]))
    }

    /// Frees a position. The value stays until the position is reused, and must show that it is
    /// free.
    #[inline]
    pub(crate) fn remove(&mut self, index: Index) {
        self.free.push(index);
    }

    /// Takes exactly these positions, and frees all others before the last of them.
    pub(crate) fn take(
        &mut self,
        positions: impl Iterator<Item = usize> + Clone,
        value: impl FnMut() -> T,
    ) {
        let count = positions.clone().max().map_or(0, |last| last + 1);
        self.slots.resize_with(count, value);
        let mut taken = alloc::vec![false; count];
        positions.for_each(|position| taken[position] = true);
        // Backwards, so that the first position is reused first.
        let free = (0..count).rev().filter(|&position| !taken[position]);
        self.free = free.map(|position| position as Index).collect();
    }

    /// Returns the same positions with other values.
    pub(crate) fn map(&self, value: impl FnMut(&T) -> T) -> Self {
        let Self { slots, free, limit } = self;
        Self { slots: slots.iter().map(value).collect(), free: free.clone(), limit: *limit }
    }

    /// Returns the value at this position, free or not.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.slots.get(index)
    }

    /// Returns the same, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: Index) -> Option<&mut T> {
        self.slots.get_mut(index as usize)
    }

    /// Returns all values with their positions, free ones included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Index, &T)> {
        self.slots.iter().enumerate().map(|(index, value)| (index as Index, value))
    }
}

impl<T> IndexTrait<Index> for Slots<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: Index) -> &T {
        &self.slots[index as usize]
    }
}

impl<T> IndexMut<Index> for Slots<T> {
    #[inline]
    fn index_mut(&mut self, index: Index) -> &mut T {
        &mut self.slots[index as usize]
    }
}
