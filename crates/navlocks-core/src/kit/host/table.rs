//! Values under keys that never repeat.

use alloc::vec::Vec;

/// Values by a key, which is a slot and how often that slot was taken.
pub(super) struct Table<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Table<T> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns the key of the value, which is never 0.
    pub(super) fn insert(&mut self, value: T) -> u64 {
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        if slot as usize == self.slots.len() {
            self.slots.push(Slot { generation: 0, value: None });
        }
        let entry = &mut self.slots[slot as usize];
        entry.generation += 1;
        entry.value = Some(value);
        u64::from(entry.generation) << 32 | u64::from(slot)
    }

    pub(super) fn remove(&mut self, key: u64) -> Option<T> {
        let slot = self.slots.get_mut(slot_of(key)).filter(|slot| slot.fits(key))?;
        let value = slot.value.take()?;
        // A slot that was taken so often is not taken again: keys never repeat.
        if slot.generation < u32::MAX {
            self.free.push(key as u32);
        }
        Some(value)
    }

    #[inline]
    pub(super) fn get(&self, key: u64) -> Option<&T> {
        self.slots.get(slot_of(key)).filter(|slot| slot.fits(key))?.value.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        self.slots.get_mut(slot_of(key)).filter(|slot| slot.fits(key))?.value.as_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref())
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }
}

impl<T> Slot<T> {
    #[inline]
    fn fits(&self, key: u64) -> bool {
        u64::from(self.generation) == key >> 32
    }
}

/// Returns the slot of a key: dense, and taken again once its value is removed.
#[inline]
pub(super) fn slot_of(key: u64) -> usize {
    key as u32 as usize
}
