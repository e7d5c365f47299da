//! A full-screen view on a terminal. Its end restores the terminal.

use std::io::{IsTerminal, stdin};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::exit::Failure;
use crate::printer::{self, Reader};

/// The alternate screen without a cursor; also no echo of what is typed.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const CLEAR_TO_END_OF_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// The screen, from when it is entered until it is dropped.
#[derive(Debug)]
pub(crate) struct Screen {
    /// The earlier settings of the terminal, if standard input is one.
    before: Option<Termios>,
}

impl Screen {
    pub(crate) fn enter() -> Result<Self, Failure> {
        let before = stdin().is_terminal().then(|| tcgetattr(stdin()).ok()).flatten();
        let screen = Self { before };
        if let Some(before) = &screen.before {
            let mut silent = before.clone();
            silent.local_modes.remove(LocalModes::ECHO);
            let _cosmetic = tcsetattr(stdin(), OptionalActions::Flush, &silent);
        }
        printer::print(ENTER)?;
        Ok(screen)
    }

    /// Draws the lines that fit over the earlier ones, without flicker.
    pub(crate) fn draw(&self, lines: &[String]) -> Result<Reader, Failure> {
        let (rows, columns) = size();
        let visible = lines.iter().take(rows);
        let drawn: Vec<String> =
            visible.map(|line| fit(line, columns) + CLEAR_TO_END_OF_LINE).collect();
        let text = format!("{HOME}{}{CLEAR_BELOW}", drawn.join("\r\n"));
        printer::print_bytes(text.as_bytes())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _nobody_there = printer::print(LEAVE);
        if let Some(before) = &self.before {
            let _hung_up = tcsetattr(stdin(), OptionalActions::Flush, before);
        }
    }
}

/// Returns the rows and columns of the terminal.
fn size() -> (usize, usize) {
    let size = tcgetwinsize(std::io::stdout());
    size.map_or((24, 80), |size| (size.ws_row.max(1).into(), size.ws_col.max(1).into()))
}

/// Returns the width of the terminal.
pub(crate) fn columns() -> usize {
    size().1
}

/// Divides a line without colours at spaces, and a longer word anywhere.
pub(crate) fn wrap(line: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if used > 0 && used + length > columns {
            lines.push(String::new());
            used = 0;
        }
        for c in word.chars() {
            if used == columns && c == ' ' {
                continue;
            }
            if used == columns {
                lines.push(String::new());
                used = 0;
            }
            if let Some(last) = lines.last_mut() {
                last.push(c);
            }
            used += 1;
        }
    }
    lines
}

/// Cuts a line to the width. Colour sequences take no room.
fn fit(line: &str, columns: usize) -> String {
    let (mut text, mut used, mut escape) = (String::new(), 0, false);
    for c in line.chars() {
        escape |= c == '\x1b';
        if escape {
            escape = c != 'm';
        } else if used == columns {
            continue;
        } else {
            used += 1;
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_wrapped_at_spaces_and_a_long_word_anywhere() {
        assert_eq!(wrap("to be or not", 5), ["to be", "or ", "not"]);
        assert_eq!(wrap("an abcdefg", 4), ["an ", "abcd", "efg"]);
        assert_eq!(wrap("abc", 3), ["abc"]);
    }

    #[test]
    fn colours_take_no_room_and_are_ended() {
        assert_eq!(fit("\x1b[1mabcd\x1b[0m", 2), "\x1b[1mab\x1b[0m");
        assert_eq!(fit("abc", 3), "abc");
    }
}
