//! The pen: writes one line with one write.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::{Deed, Line, Moment, RequestNo, Step, What, Who};

/// Writes the record of one process. It can be shared by the threads of that process.
#[derive(Debug)]
pub struct Pen {
    who: Who,
    file: File,
}

impl Pen {
    /// Creates a record in a folder, named by its process.
    ///
    /// # Errors
    ///
    /// The file cannot be made, or it exists: a record is never mixed with an earlier one.
    pub fn new(folder: &Path, who: Who) -> io::Result<Self> {
        let path = folder.join(format!("{who}.jsonl"));
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        Ok(Self { who, file })
    }

    /// Returns the process that writes.
    pub fn who(&self) -> &Who {
        &self.who
    }

    /// Writes a step of this moment: the client is about to act, or just received.
    ///
    /// # Errors
    ///
    /// The line could not be written. Later steps would be missing from the record, so the client
    /// must end.
    pub fn step(&self, request: RequestNo, step: Step) -> io::Result<()> {
        self.step_at(Moment::now(), request, step)
    }

    /// Writes a step at a moment that was read before.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn step_at(&self, at: Moment, request: RequestNo, step: Step) -> io::Result<()> {
        self.write(at, What::Request(request, step))
    }

    /// Writes an act on a process, of this moment.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn deed(&self, whom: &Who, deed: Deed) -> io::Result<()> {
        self.write(Moment::now(), What::Deed(whom.clone(), deed))
    }

    /// Writes any line.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn write(&self, at: Moment, what: What) -> io::Result<()> {
        let line = Line { at, who: self.who.clone(), what };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        // The kernel has the line when this returns, even if the process is killed then. Only a
        // full disk writes a part.
        match (&self.file).write(&text)? {
            written if written == text.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}
