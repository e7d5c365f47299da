//! Signals that are sent to `navlocks` and meant for the command.

use std::future::poll_fn;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

use crate::exit::Failure;
use crate::system;

/// What is passed on. Not those that a process sends itself, nor those that cannot be caught.
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

/// Those that end a process which does not catch them, among the above.
const ENDING: [Signal; 4] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];

/// Listens for signals from the moment it is made.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    caught: Vec<(Signal, unix::Signal)>,
}

impl Signals {
    /// Listens for the signals that end a process.
    pub(crate) fn ending() -> Result<Self, Failure> {
        Self::default().and(&ENDING)
    }

    /// Listens for all signals that are passed on. None that came before is lost.
    pub(crate) fn listen(self) -> Result<Self, Failure> {
        self.and(&PASSED_ON)
    }

    /// Signals that were ignored stay so, here and in the command: `nohup` relies on it.
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

    /// The next signal.
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
