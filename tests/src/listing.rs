//! A history for people: each operation and its effects.

use core::fmt;

use crate::history::{Op, Witness, play};
use crate::model::Scopes;
use crate::model::words::{Answer, Input};

/// The operations of a history, one line an operation.
#[derive(Debug, Default)]
pub struct Listing {
    lines: Vec<String>,
    /// The line of the present operation.
    done: Vec<String>,
    follows: Vec<String>,
}

impl Listing {
    /// Plays a whole history on the model.
    pub fn of(ops: &[Op]) -> Self {
        let mut story = Self::default();
        play(ops, &mut [&mut story]).expect("a story never objects");
        for (line, op) in story.lines.iter_mut().zip(ops) {
            // These are no inputs: a witness sees only their effects.
            line.insert_str(
                0,
                match op {
                    Op::Poll => "poll once",
                    Op::Polling(true) => "from here on, all events are polled after each op",
                    Op::Polling(false) => "from here on, no event is polled",
                    _ if line.is_empty() => "there is no such client or request",
                    _ => "",
                },
            );
        }
        story
    }
}

impl Witness for Listing {
    fn see(&mut self, input: &Input, answer: &Answer, _: &Scopes) -> Result<(), String> {
        match answer {
            Answer::Event(Some(event)) => self.follows.push(event.to_string()),
            Answer::Event(None) => {}
            Answer::Joined(client) => self.done.push(format!("c{client} joins")),
            Answer::Made(request, decided) => {
                self.done.push(format!("{input} as r{request}: {decided}"));
            }
            Answer::Refused(refusal) => self.done.push(format!("{input}, refused: {refusal:?}")),
            Answer::Effect(true) | Answer::Nothing => self.done.push(input.to_string()),
            Answer::Effect(false) => self.done.push(format!("{input}, no effect")),
            Answer::Count(count) => self.done.push(format!("{input}, {count} released")),
            Answer::Snapshot(snapshot) => self.done.push(format!("{input}: {snapshot}")),
        }
        Ok(())
    }

    fn settle(&mut self, _: &Scopes) -> Result<(), String> {
        let mut line = core::mem::take(&mut self.done).join("; ");
        for event in self.follows.drain(..) {
            line.push_str("\n       ");
            line.push_str(&event);
        }
        self.lines.push(line);
        Ok(())
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, line) in self.lines.iter().enumerate() {
            writeln!(f, "{:4}. {line}", index + 1)?;
        }
        Ok(())
    }
}
