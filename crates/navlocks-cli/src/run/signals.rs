//! Signals that `navlocks` receives and passes on to the command.

use std::fs::File;
use std::future::poll_fn;
use std::io::Read;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

use crate::exit::Failure;

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

/// More bytes than the kernel's status of a process has.
const STATUS_BYTES_MAX: usize = 4096;

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
        let ignored = ignored();
        for &kind in kinds {
            let known = self.caught.iter().any(|(known, _)| *known == kind);
            if !known && ignored & (1 << (kind.as_raw() - 1)) == 0 {
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

/// Returns the signals that this process ignores from its start, a bit for each, the lowest for
/// signal 1.
fn ignored() -> u64 {
    // One read is enough for this file, and every command waits for it.
    let mut status = [0; STATUS_BYTES_MAX];
    let read = File::open("/proc/self/status").and_then(|mut file| file.read(&mut status));
    let status = String::from_utf8_lossy(&status[..read.unwrap_or(0)]);
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
