//! Signals that are sent to `navlocks` and meant for the command.

use std::fs::File;
use std::future::poll_fn;
use std::io::Read;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

use crate::exit::Failure;

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

/// More than the kernel has to say about a process, in bytes.
const STATUS_BYTES_MAX: usize = 4096;

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

/// The signals that this process was started to ignore, a bit for each, the lowest for signal 1.
fn ignored() -> u64 {
    // In one read: the file is short, and every start of a command waits for this.
    let mut status = [0; STATUS_BYTES_MAX];
    let read = File::open("/proc/self/status").and_then(|mut file| file.read(&mut status));
    let status = String::from_utf8_lossy(&status[..read.unwrap_or(0)]);
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
