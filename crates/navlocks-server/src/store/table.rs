//! A table of slots in a mapped file, which outlives the process that writes it.
//!
//! A slot is live when its first word is not zero. That word is written last when a slot is taken
//! and first when it is freed, so a process that is killed between two stores leaves the old slot
//! or the new one.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{Ordering, compiler_fence};

use memmap2::MmapMut;

use super::mapping::map;

/// The words of a slot.
pub(super) const WORDS: usize = 8;
pub(super) type Slot = [u64; WORDS];

const WORD_BYTES: usize = size_of::<u64>();
const SLOT_BYTES: usize = size_of::<Slot>();

/// The slots that are mapped, and reserved on the disk, at a time.
const CHUNK_SLOTS: usize = 4096;
const CHUNK_BYTES: usize = CHUNK_SLOTS * SLOT_BYTES;

/// The word of the header with the number of chunks that have slots. A file may be longer: its
/// growth failed, or a kill came before the new chunk was counted.
const CHUNKS: usize = WORDS - 1;

/// The index of a slot. Zero, which holds the header, stands for none.
pub(crate) type Index = u32;

/// A table of slots.
#[derive(Debug)]
pub(super) struct Table {
    file: File,
    chunks: Vec<MmapMut>,
    free: Vec<Index>,
    /// The file had all chunks when it was opened.
    whole: bool,
}

impl Table {
    /// Opens the table at this path, which is made if it is missing.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        let present = file.metadata()?.len() / CHUNK_BYTES as u64;
        if present == 0 {
            // A part of a chunk would look whole once it is lengthened.
            file.set_len(0)?;
        }
        let mut table = Self { file, chunks: Vec::new(), free: Vec::new(), whole: false };
        table.add_chunk()?;
        let counted = table.get(0, CHUNKS);
        table.whole = (1..=present).contains(&counted);
        if table.whole {
            while (table.chunks.len() as u64) < counted {
                table.add_chunk()?;
            }
        }
        Ok(table)
    }

    /// Maps one chunk more. It is not counted, and its free slots are not known yet.
    fn add_chunk(&mut self) -> io::Result<()> {
        let offset = (self.chunks.len() * CHUNK_BYTES) as u64;
        self.chunks.push(map(&self.file, offset, CHUNK_BYTES)?);
        Ok(())
    }

    /// Adds a chunk of dead slots. The file may have other bytes there.
    fn grow(&mut self) -> io::Result<()> {
        self.file.set_len((self.chunks.len() * CHUNK_BYTES) as u64)?;
        self.add_chunk()?;
        self.set(0, CHUNKS, self.chunks.len() as u64);
        Ok(())
    }

    /// Returns true if the file at this path has a live slot. Changes nothing.
    pub(super) fn is_used(path: &Path) -> bool {
        let is_live = |slot: &[u8]| slot[..WORD_BYTES] != [0; WORD_BYTES];
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.chunks_exact(SLOT_BYTES).skip(1).any(is_live)
    }

    /// Returns true if this is the file at this path.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        match (self.file.metadata(), std::fs::metadata(path)) {
            (Ok(own), Ok(found)) => (own.dev(), own.ino()) == (found.dev(), found.ino()),
            _ => false,
        }
    }

    /// Returns a table at another path with the same slots.
    pub(super) fn copy_to(&self, path: &Path) -> io::Result<Self> {
        let mut copy = Self::open(path)?;
        copy.reset(&[0; WORDS])?;
        while copy.chunks.len() < self.chunks.len() {
            copy.grow()?;
        }
        // The header last: a table that a kill leaves without one counts as missing.
        for (new, own) in copy.chunks.iter_mut().zip(&self.chunks).skip(1) {
            new.copy_from_slice(own);
        }
        copy.chunks[0][SLOT_BYTES..].copy_from_slice(&self.chunks[0][SLOT_BYTES..]);
        copy.write(0, &self.read(0));
        copy.free.clone_from(&self.free);
        Ok(copy)
    }

    /// Returns true if no part of the file was missing when it was opened.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Returns the slot that describes the table, without its last word.
    pub(super) fn header(&self) -> Slot {
        let mut header = self.read(0);
        header[CHUNKS] = 0;
        header
    }

    /// Empties the table, and describes it anew. The last word of the header is not used.
    ///
    /// # Errors
    ///
    /// The file cannot be cut.
    pub(super) fn reset(&mut self, header: &Slot) -> io::Result<()> {
        self.write(0, &[0; WORDS]);
        self.chunks.truncate(1);
        self.file.set_len(CHUNK_BYTES as u64)?;
        for index in 1..self.slots() {
            self.set(index, 0, 0);
        }
        let mut header = *header;
        header[CHUNKS] = 1;
        self.write(0, &header);
        self.find_free();
        Ok(())
    }

    /// Returns the live slots.
    pub(super) fn live(&self) -> impl Iterator<Item = (Index, Slot)> + '_ {
        (1..self.slots()).map(|index| (index, self.read(index))).filter(|(_, slot)| slot[0] != 0)
    }

    /// Finds the slots that can be taken; the first ones are taken first.
    pub(super) fn find_free(&mut self) {
        let dead = |&index: &Index| self.get(index, 0) == 0;
        self.free = (1..self.slots()).rev().filter(dead).collect();
    }

    /// Returns the number of slots, the header among them.
    pub(super) fn slots(&self) -> Index {
        (self.chunks.len() * CHUNK_SLOTS) as Index
    }

    /// Takes a slot, which is dead until it is written.
    pub(super) fn take(&mut self) -> io::Result<Index> {
        if let Some(index) = self.free.pop() {
            return Ok(index);
        }
        let first = self.slots();
        self.grow()?;
        self.free.extend((first + 1..self.slots()).rev());
        Ok(first)
    }

    /// Frees a slot.
    #[inline]
    pub(super) fn free(&mut self, index: Index) {
        self.set(index, 0, 0);
        self.free.push(index);
    }

    #[inline]
    fn word(index: Index, word: usize) -> (usize, usize) {
        let (chunk, slot) = (index as usize / CHUNK_SLOTS, index as usize % CHUNK_SLOTS);
        (chunk, slot * SLOT_BYTES + word * WORD_BYTES)
    }

    #[inline]
    pub(super) fn get(&self, index: Index, word: usize) -> u64 {
        let (chunk, at) = Self::word(index, word);
        let mut bytes = [0; WORD_BYTES];
        bytes.copy_from_slice(&self.chunks[chunk][at..at + WORD_BYTES]);
        u64::from_le_bytes(bytes)
    }

    /// Writes one word. It is in the file before everything that is written after it.
    #[inline]
    pub(super) fn set(&mut self, index: Index, word: usize, value: u64) {
        let (chunk, at) = Self::word(index, word);
        self.chunks[chunk][at..at + WORD_BYTES].copy_from_slice(&value.to_le_bytes());
        // A process that is killed stops between two instructions: their order is enough.
        compiler_fence(Ordering::SeqCst);
        #[cfg(test)]
        tests::kill_here(self);
    }

    pub(super) fn read(&self, index: Index) -> Slot {
        std::array::from_fn(|word| self.get(index, word))
    }

    /// Writes a whole slot, its first word last.
    #[inline]
    pub(super) fn write(&mut self, index: Index, slot: &Slot) {
        for (word, &value) in slot.iter().enumerate().skip(1) {
            self.set(index, word, value);
        }
        self.set(index, 0, slot[0]);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::RefCell;
    use std::path::PathBuf;

    use super::*;

    thread_local! {
        /// Called after every store, with all bytes of the table that was written.
        static AFTER_STORE: RefCell<Option<Check>> = const { RefCell::new(None) };
    }

    type Check = Box<dyn FnMut(&[u8])>;

    const HEADER: Slot = [7, 7, 7, 7, 7, 7, 7, 0];

    /// Shows the table as a process that is killed here would leave it.
    pub(super) fn kill_here(table: &Table) {
        // The check itself may open tables and write to them.
        if let Some(mut after) = AFTER_STORE.take() {
            let bytes: Vec<u8> = table.chunks.iter().flat_map(|chunk| chunk.to_vec()).collect();
            after(&bytes);
            AFTER_STORE.set(Some(after));
        }
    }

    /// Runs something, and calls `check` with the bytes of the table after each of its stores.
    pub(in crate::store) fn killed_at_every_store(
        run: impl FnOnce(),
        check: impl FnMut(&[u8]) + 'static,
    ) {
        AFTER_STORE.set(Some(Box::new(check)));
        run();
        AFTER_STORE.set(None);
    }

    pub(in crate::store) fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("navlocks-{name}-{}", std::process::id()));
        let _missing = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder for this test");
        folder
    }

    #[test]
    fn slots_are_found_again_when_the_table_is_opened_again() {
        let folder = folder("table");
        let path = folder.join("slots");
        let mut table = Table::open(&path).expect("a table");
        table.reset(&HEADER).expect("a table");
        let taken: Vec<Index> = (0..5_000).map(|_| table.take().expect("room")).collect();
        for &index in &taken {
            table.write(index, &[u64::from(index); WORDS]);
        }
        table.free(taken[17]);
        drop(table);

        let mut table = Table::open(&path).expect("the table");
        assert_eq!(table.header(), HEADER);
        let found: Vec<Index> = table.live().map(|(index, _)| index).collect();
        let left: Vec<Index> = taken.iter().copied().filter(|&index| index != taken[17]).collect();
        assert_eq!(found, left);
        assert!(table.live().all(|(index, slot)| slot == [u64::from(index); WORDS]));
        table.find_free();
        assert_eq!(table.take().expect("room"), taken[17]);
        std::fs::remove_dir_all(folder).expect("the folder goes");
    }

    /// Returns a table of three chunks, all slots of which are live, and its path.
    fn full_table(folder: &Path) -> PathBuf {
        let path = folder.join("slots");
        let mut table = Table::open(&path).expect("a table");
        table.reset(&HEADER).expect("a table");
        for _ in 1..3 * CHUNK_SLOTS {
            let index = table.take().expect("room");
            table.write(index, &[9; WORDS]);
        }
        path
    }

    fn set_length(path: &Path, bytes: usize) {
        let file = OpenOptions::new().write(true).open(path).expect("the table");
        file.set_len(bytes as u64).expect("it can be set");
    }

    #[test]
    fn cut_table_is_not_whole_and_its_tail_does_not_come_back() {
        let folder = folder("cut");
        for bytes in [0, 100, CHUNK_BYTES, 2 * CHUNK_BYTES, 5 * CHUNK_BYTES / 2] {
            let path = full_table(&folder);
            set_length(&path, bytes);
            // A service that is killed before it empties the table changes nothing.
            for _ in 0..2 {
                assert!(!Table::open(&path).expect("the table").is_whole(), "{bytes}");
            }
            let mut table = Table::open(&path).expect("the table");
            table.reset(&HEADER).expect("an empty table");
            for _ in 1..3 * CHUNK_SLOTS {
                table.take().expect("room");
            }
            drop(table);
            let table = Table::open(&path).expect("the table");
            assert!(table.is_whole());
            assert_eq!((table.slots(), table.live().count()), (3 * CHUNK_SLOTS as Index, 0));
        }
        std::fs::remove_dir_all(folder).expect("the folder goes");
    }

    #[test]
    fn table_whose_growth_did_not_end_is_whole() {
        let folder = folder("grown");
        for bytes in [3 * CHUNK_BYTES + 5_000, 4 * CHUNK_BYTES, 9 * CHUNK_BYTES / 2] {
            let path = full_table(&folder);
            set_length(&path, bytes);
            let mut table = Table::open(&path).expect("the table");
            table.find_free();
            assert!(table.is_whole());
            assert_eq!(table.live().count(), 3 * CHUNK_SLOTS - 1);
            let index = table.take().expect("room");
            assert_eq!(index, 3 * CHUNK_SLOTS as Index);
            table.write(index, &[9; WORDS]);
            drop(table);
            let table = Table::open(&path).expect("the table");
            assert!(table.is_whole());
            assert_eq!(table.live().count(), 3 * CHUNK_SLOTS);
        }
        std::fs::remove_dir_all(folder).expect("the folder goes");
    }

    #[test]
    fn reset_cuts_the_file() {
        let folder = folder("reset");
        let path = full_table(&folder);
        let length = || std::fs::metadata(&path).expect("the table").len();
        let mut table = Table::open(&path).expect("the table");
        assert_eq!(length(), 3 * CHUNK_BYTES as u64);
        table.reset(&HEADER).expect("the file is cut");
        assert_eq!(length(), CHUNK_BYTES as u64);
        assert_eq!(table.live().count(), 0);
        std::fs::remove_dir_all(folder).expect("the folder goes");
    }

    #[test]
    fn a_slot_is_live_only_when_all_of_it_is_written() {
        let folder = folder("live");
        let mut table = Table::open(&folder.join("slots")).expect("a table");
        table.reset(&HEADER).expect("a table");
        let index = table.take().expect("room");
        let at = index as usize * SLOT_BYTES;
        killed_at_every_store(
            || {
                table.write(index, &[9; WORDS]);
                table.free(index);
            },
            move |bytes| {
                let slot = &bytes[at..at + SLOT_BYTES];
                let live = slot[..WORD_BYTES] != [0; WORD_BYTES];
                assert!(!live || slot.chunks(WORD_BYTES).all(|word| word[0] == 9));
            },
        );
        std::fs::remove_dir_all(folder).expect("the folder goes");
    }
}
