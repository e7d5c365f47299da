//! A limit of processor time for this process and all that it starts.

use std::fs;
use std::io;
use std::path::PathBuf;

/// A control group with this process in it. Dropped, it puts the process back.
pub(super) struct CpuLimit {
    folder: PathBuf,
    parent: PathBuf,
}

impl CpuLimit {
    /// Lets this process and those that it starts use so many processors together.
    pub(super) fn set(cores: f64) -> io::Result<Self> {
        let root = PathBuf::from("/sys/fs/cgroup");
        let is_unified = root.join("cgroup.controllers").exists();
        let parent = if is_unified { root } else { root.join("cpu") };
        let folder = parent.join(format!("navlocks-scale-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let limit = Self { folder, parent };
        let micros = (cores * 100_000.0) as u64;
        match is_unified {
            true => fs::write(limit.folder.join("cpu.max"), format!("{micros} 100000"))?,
            false => fs::write(limit.folder.join("cpu.cfs_quota_us"), micros.to_string())?,
        }
        limit.enter(&limit.folder)?;
        Ok(limit)
    }

    fn enter(&self, folder: &std::path::Path) -> io::Result<()> {
        fs::write(folder.join("cgroup.procs"), std::process::id().to_string())
    }
}

impl Drop for CpuLimit {
    fn drop(&mut self) {
        // Processes that still end keep the folder: a later run makes one of its own.
        let _left = self.enter(&self.parent).and_then(|()| fs::remove_dir(&self.folder));
    }
}
