//! The only place of the command that writes to the terminal.

use std::fmt;
use std::io::{self, ErrorKind, IsTerminal, Write};

use crate::exit::{Exit, Failure};

/// Writes `text` to standard output. A reader that stops reading early (`navlocks query | head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes()).map(|_| ())
}

/// Writes to standard output, and tells whether anybody reads on.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<Reader, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(Failure::new(Exit::Output, format!("cannot write the output: {error}"))),
    }
}

/// Whether somebody reads what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Reads,
    Gone,
}

/// Writes a line to standard error, for people. When that fails there is nobody left to tell.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "navlocks: {text}");
}

/// Writes to standard error as it is.
pub(crate) fn tell_raw(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Colours for what is written to a terminal, and none elsewhere or where `NO_COLOR` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Palette {
    colours: bool,
}

impl Palette {
    /// For what is written to standard output.
    pub(crate) fn of_stdout() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { colours: wanted && io::stdout().is_terminal() }
    }

    /// Without colours.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { colours: false }
    }

    pub(crate) fn has_colours(self) -> bool {
        self.colours
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Text of strangers, without what would move the cursor or change the terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Harmless<'a>(pub(crate) &'a str);

impl fmt::Display for Harmless<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if c.is_control() { write!(f, "{}", c.escape_unicode())? } else { write!(f, "{c}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_strangers_do_nothing() {
        assert_eq!(Harmless("a\x1b[2Jb\nä").to_string(), "a\\u{1b}[2Jb\\u{a}ä");
    }
}
