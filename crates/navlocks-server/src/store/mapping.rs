//! Pages of a file in the memory of this process.

use std::fs::File;
use std::io;

use memmap2::{MmapMut, MmapOptions};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

/// Maps a part of a file, which is made as long as needed. The disk has room for it afterwards.
///
/// A store to these pages survives the end of this process without a system call.
#[allow(unsafe_code, reason = "memory that another process could change; see below")]
pub(super) fn map(file: &File, offset: u64, length: usize) -> io::Result<MmapMut> {
    let before = file.metadata()?.len();
    if let Err(error) = reserve(file, offset, length as u64) {
        // Some file systems have lengthened the file by the part that had room.
        let _as_long_as_it_is = file.set_len(before);
        return Err(error);
    }
    // SAFETY: the file is in a folder that this service has locked and that only its user can
    // open, so no other program changes it or makes it shorter.
    unsafe { MmapOptions::new().offset(offset).len(length).map_mut(file) }
}

/// Takes the room from the disk now: a store to a page without room would end the process.
fn reserve(file: &File, offset: u64, length: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), offset, length) {
        Ok(()) => Ok(()),
        Err(Errno::NOTSUP | Errno::NOSYS) => write_zeros(file, offset, length),
        Err(error) => Err(error.into()),
    }
}

/// Lengthens a file by bytes that are on the disk, where the file system cannot reserve them.
fn write_zeros(file: &File, offset: u64, length: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt as _;
    let present = file.metadata()?.len();
    let zeros = [0; 4096];
    let mut at = offset.max(present);
    while at < offset + length {
        let bytes = (offset + length - at).min(zeros.len() as u64) as usize;
        file.write_all_at(&zeros[..bytes], at)?;
        at += bytes as u64;
    }
    Ok(())
}
