//! What a client process is sent to do: one argument, in JSON.

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
    /// Where its record goes.
    pub folder: PathBuf,
    /// Whose locks it uses: those of a service, or `local:` for its own, which exclude nobody else.
    pub url: String,
    /// The partition of its locks there.
    #[serde(default)]
    pub partition: String,
    /// The lease to ask the service for, if not for its usual one.
    pub lease: Option<Duration>,
    /// Where its dice begin.
    pub seed: u64,
    /// How many requests it has under way at a time.
    pub tasks: u64,
    /// What it does.
    pub habits: Habits,
}

impl Errand {
    /// The program on this errand. It finishes when its standard input ends.
    ///
    /// # Errors
    ///
    /// The folder's name cannot be written in JSON.
    pub fn command(&self, program: &Path) -> io::Result<Command> {
        let mut command = Command::new(program);
        command.arg(serde_json::to_string(self)?).stdin(Stdio::piped());
        Ok(command)
    }

    /// The errand of this process.
    ///
    /// # Errors
    ///
    /// What is wrong with the arguments.
    pub fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (Some(errand), None) = (args.nth(1), args.next()) else {
            return Err("usage: recorder ERRAND, where ERRAND is a JSON object".into());
        };
        serde_json::from_str(&errand).map_err(|error| format!("this is no errand: {error}"))
    }
}
