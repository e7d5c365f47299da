//! The only place of the command that writes to the terminal.

use std::fmt;
use std::io::{self, ErrorKind, IsTerminal, Write};

use crate::exit::{Exit, Failure};

/// Writes `text` to standard output. A reader that ends early (`navlocks query | head`) is no
/// error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes()).map(|_| ())
}

/// Writes to standard output. Returns whether the reader is still there.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<Reader, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(Failure::new(Exit::Output, format!("cannot write the output: {error}"))),
    }
}

/// The state of the reader of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Reads,
    Gone,
}

/// Writes a line to standard error, for people. A failure is ignored: no reader is left.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "navlocks: {text}");
}

/// Writes raw text to standard error.
pub(crate) fn tell_raw(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Colours for a terminal; none elsewhere, and none if `NO_COLOR` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Palette {
    colours: bool,
}

impl Palette {
    /// Returns the palette of standard output.
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

/// Untrusted text, with escaped control characters.
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
    fn control_characters_of_untrusted_text_are_escaped() {
        assert_eq!(Harmless("a\x1b[2Jb\nä").to_string(), "a\\u{1b}[2Jb\\u{a}ä");
    }
}
