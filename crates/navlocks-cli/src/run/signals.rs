//! Signals that `navlocks` receives and passes on to the command.

use std::future::poll_fn;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

use crate::exit::Failure;
use crate::system;

/// The signals that are passed on: all that other processes send and that can be caught.
const PASSED_ON: [Signal; 10] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::WINCH,
    Signal::CONT,
    Signal::TSTP,
];

/// Those of them that end a process without a handler.
const ENDING: [Signal; 4] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];

/// Handlers of signals, from the moment they are made.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    caught: Vec<(Signal, unix::Signal)>,
}

impl Signals {
    /// Handles the signals that end a process.
    pub(crate) fn ending() -> Result<Self, Failure> {
        Self::default().and(&ENDING)
    }

    /// Handles all signals that are passed on. Earlier ones are kept.
    pub(crate) fn listen(self) -> Result<Self, Failure> {
        self.and(&PASSED_ON)
    }

    /// Ignored signals stay ignored, here and in the command: `nohup` relies on it.
    fn and(mut self, kinds: &[Signal]) -> Result<Self, Failure> {
        for &kind in kinds {
            let known = self.caught.iter().any(|(known, _)| *known == kind);
            if !known && !system::is_ignored(kind) {
                let listener =
                    signal(SignalKind::from_raw(kind.as_raw())).map_err(super::refused)?;
                self.caught.push((kind, listener));
            }
        }
        Ok(self)
    }

    /// Returns the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|cx| {
            for (kind, listener) in &mut self.caught {
                if let Poll::Ready(Some(())) = listener.poll_recv(cx) {
                    return Poll::Ready(*kind);
                }
            }
            Poll::Pending
        })
        .await
    }
}
