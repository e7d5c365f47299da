//! The task of a client process: one argument, in JSON.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::chaos::Habits;
use crate::record::Who;

/// The whole command line of the program `recorder`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errand {
    /// Its name in the history.
    pub who: Who,
    /// The folder of its record.
    pub folder: PathBuf,
    /// The address of its locks: a service, or `local:` for its own process.
    pub url: String,
    /// The partition of its locks there.
    #[serde(default)]
    pub partition: String,
    /// The lease to request, if not the usual one.
    pub lease: Option<Duration>,
    /// The seed of its dice.
    pub seed: u64,
    /// How many requests it has in flight at a time.
    pub tasks: u64,
    /// Its habits.
    pub habits: Habits,
}

impl Errand {
    /// Returns the command of this task. The program finishes when its standard input ends.
    ///
    /// # Errors
    ///
    /// The folder's name cannot be written in JSON.
    pub fn command(&self, program: &Path) -> io::Result<Command> {
        let mut command = Command::new(program);
        command.arg(serde_json::to_string(self)?).stdin(Stdio::piped());
        Ok(command)
    }

    /// Reads the task of this process.
    ///
    /// # Errors
    ///
    /// The arguments are malformed, for this reason.
    pub fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (Some(errand), None) = (args.nth(1), args.next()) else {
            return Err("usage: recorder ERRAND, where ERRAND is a JSON object".into());
        };
        serde_json::from_str(&errand).map_err(|error| format!("this is no errand: {error}"))
    }
}
