//! The history: the records of all processes.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use super::Line;

/// All lines of all processes. Lines of one process are in its order; lines of different ones are
/// not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The lines.
    pub lines: Vec<Line>,
}

/// Why a record could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The file or folder.
    Io(PathBuf, io::Error),
    /// A line that no pen wrote.
    Line(PathBuf, usize, serde_json::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            Self::Line(path, number, error) => {
                write!(f, "{}:{number}: this is no line of a record: {error}", path.display())
            }
        }
    }
}

impl Error for ReadError {}

impl History {
    /// Reads all records in a folder.
    ///
    /// # Errors
    ///
    /// [`ReadError`]. A truncated last line is none: its process was killed while it wrote.
    pub fn read(folder: &Path) -> Result<Self, ReadError> {
        let failed = |error| ReadError::Io(folder.to_path_buf(), error);
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                paths.push(path);
            }
        }
        paths.sort();
        let mut history = Self::default();
        for path in paths {
            let text = fs::read(&path).map_err(|error| ReadError::Io(path.clone(), error))?;
            history
                .append(&text)
                .map_err(|(number, error)| ReadError::Line(path, number, error))?;
        }
        Ok(history)
    }

    /// Appends the text of one record. Returns the number of the line on an error.
    fn append(&mut self, text: &[u8]) -> Result<(), (usize, serde_json::Error)> {
        for (index, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
            if let Some(line) = line.strip_suffix(b"\n") {
                self.lines.push(serde_json::from_slice(line).map_err(|error| (index + 1, error))?);
            }
        }
        Ok(())
    }
}
