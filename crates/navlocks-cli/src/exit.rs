//! How `navlocks` ends.

use std::fmt::{self, Write as _};
use std::process::ExitCode;

macro_rules! exits {
    ($($(#[doc = $meaning:literal])+ $exit:ident = $code:literal,)+) => {
        /// The exit codes of `navlocks`. A command that ran gives its own, and 128 plus the
        /// signal's number if a signal ended it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Exit {
            $($(#[doc = $meaning])+ $exit = $code,)+
        }

        impl Exit {
            /// All of them, in order.
            pub const ALL: &[Self] = &[$(Self::$exit),+];

            /// Returns its meaning, for the manual.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$exit => concat!($($meaning),+).trim_ascii(),)+
                }
            }
        }
    };
}

exits! {
    /// All went well.
    Success = 0,
    /// The lock was not free, or there was nothing to take away, or doctor found something.
    Conflict = 1,
    /// An option that does not exist, a value that makes no sense, or options that contradict each
    /// other.
    Usage = 64,
    /// No service can be reached at the address.
    Unavailable = 69,
    /// The service failed, or sent a message that makes no sense.
    Service = 70,
    /// The system refused something, such as another process.
    System = 71,
    /// The folder of the service cannot be made or written, or is not private to the user.
    Folder = 73,
    /// Standard output could not be written.
    Output = 74,
    /// The service speaks another version of the protocol.
    Version = 76,
    /// The service refuses this token or account, or its certificate is not trusted.
    Refused = 77,
    /// No name was given.
    NoName = 80,
    /// No command was given after `--`.
    NoCommand = 81,
    /// There is no `--` between the names and the command.
    NoSeparator = 82,
    /// A name is empty, as when a variable of a script is not set.
    EmptyName = 83,
    /// A name starts with `-`; such names are reserved.
    ReservedName = 84,
    /// A name is not UTF-8.
    NotText = 85,
    /// A socket is there but no service listens: it has ended.
    StaleSocket = 86,
    /// The service could not be started.
    NoStart = 87,
    /// A limit of the service was reached.
    Limit = 88,
    /// The request was aborted by another client before it was granted, or would have closed a
    /// deadlock.
    Withdrawn = 89,
    /// The lock was lost while the command ran, and the command was ended.
    Lost = 90,
    /// Another service has the socket or the state folder.
    Busy = 91,
    /// The service is there and does not answer in time; what it was asked is not known.
    Silent = 92,
    /// The command was found but cannot be executed.
    CannotExecute = 126,
    /// The command was not found.
    NotFound = 127,
}

impl Exit {
    /// The meaning of other codes.
    pub const OF_COMMAND: &str =
        "A command that ran gives its own, and 128 plus the signal's number if a signal ended it.";

    /// Returns the number.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the table of all codes, for the help and the manual.
    pub fn table() -> String {
        let mut table = String::from("Exit status:\n");
        for exit in Self::ALL {
            let _ = writeln!(table, "  {:>3}  {}", exit.code(), exit.meaning());
        }
        table.push_str(Self::OF_COMMAND);
        table
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// A failure of `navlocks`: a code for scripts, a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code to exit with.
    pub code: u8,
    /// The sentence: what happened, and what to do.
    pub message: String,
}

impl Failure {
    /// Makes a failure of this kind.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { code: exit.code(), message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_leave_the_range_of_signals_free() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
        assert!(codes.iter().all(|code| *code < 128));
    }
}
