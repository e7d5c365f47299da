//! The audit: a line of the log for each act that takes a lock from another client, and for each
//! refused access. A flood of one kind is counted instead of written.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// So many lines of one kind are written in this time.
const LINES_MAX: u32 = 50;
const WINDOW: Duration = Duration::from_secs(10);

/// The kinds of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Steal,
    ForceRelease,
    /// A holder has lost its lock by one of these.
    Loss,
    Refusal,
}

impl Act {
    const ALL: [Self; 4] = [Self::Steal, Self::ForceRelease, Self::Loss, Self::Refusal];

    /// Returns the word for it in the log.
    fn word(self) -> &'static str {
        match self {
            Self::Steal => "steal",
            Self::ForceRelease => "force-release",
            Self::Loss => "loss",
            Self::Refusal => "refusal",
        }
    }
}

/// The lines of each kind in the present window.
#[derive(Debug, Default)]
pub(crate) struct Audit([Cell<Window>; Act::ALL.len()]);

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    began: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl Audit {
    /// Returns true if a line of this kind is to be written. Others are counted.
    pub(crate) fn admits(&self, act: Act, now: Instant) -> bool {
        let cell = &self.0[act as usize];
        let mut window = cell.get();
        if window.began.is_none_or(|began| now.saturating_duration_since(began) >= WINDOW) {
            report(act, window.left_out);
            window = Window { began: Some(now), ..Window::default() };
        }
        let admits = window.lines < LINES_MAX;
        window.lines += u32::from(admits);
        window.left_out += u64::from(!admits);
        cell.set(window);
        admits
    }

    /// Writes how many lines were left out in windows that are over.
    pub(crate) fn report_floods(&self, now: Instant) {
        for act in Act::ALL {
            let cell = &self.0[act as usize];
            let window = cell.get();
            if window.began.is_some_and(|began| now.saturating_duration_since(began) >= WINDOW) {
                report(act, window.left_out);
                cell.set(Window::default());
            }
        }
    }
}

fn report(act: Act, left_out: u64) {
    if left_out > 0 {
        tracing::warn!(audit = act.word(), left_out, "there were too many lines of this kind");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flood_of_one_kind_is_counted_and_leaves_room_for_others() {
        let (audit, now) = (Audit::default(), Instant::now());
        let admitted = (0..1000).filter(|_| audit.admits(Act::Refusal, now)).count();
        assert_eq!(admitted, LINES_MAX as usize);
        assert_eq!(audit.0[Act::Refusal as usize].get().left_out, 1000 - u64::from(LINES_MAX));
        assert!(audit.admits(Act::Steal, now));
        audit.report_floods(now + WINDOW / 2);
        assert!(!audit.admits(Act::Refusal, now + WINDOW / 2));
        audit.report_floods(now + WINDOW);
        assert_eq!(audit.0[Act::Refusal as usize].get().left_out, 0);
        assert!(audit.admits(Act::Refusal, now + WINDOW));
    }
}
