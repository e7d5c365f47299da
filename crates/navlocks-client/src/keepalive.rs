//! A connected service that sends nothing.
//!
//! A service that hangs keeps its connections. While a request waits for it, the client sends a
//! ping after half of the allowed silence; every message breaks the silence.

use std::time::Duration;

use crate::moment::Moment;

/// The number of pings against silence. Those that renew a lease are numbered from 1.
pub(crate) const SIGN_OF_LIFE: u64 = 0;

/// The silence of a service, while a request may wait for it.
#[derive(Debug)]
pub(crate) struct Keepalive {
    /// The allowed silence; none if it has no end.
    limit: Option<Duration>,
    silence: Option<Silence>,
}

#[derive(Clone, Copy, Debug)]
struct Silence {
    since: Moment,
    /// When the client sent a ping.
    pinged: Option<Moment>,
}

/// The next step against a silence that has lasted long enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// The client sends a ping.
    Ping,
    /// No answer came: all waits end.
    GiveUp,
}

impl Keepalive {
    /// Allows a silence of this length.
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self { limit, silence: None }
    }

    /// Notes that a request begins to wait for the service.
    pub(crate) fn begin(&mut self, now: Moment) {
        if self.limit.is_some() && self.silence.is_none() {
            self.silence = Some(Silence { since: now, pinged: None });
        }
    }

    /// Notes a message of the service.
    pub(crate) fn received(&mut self, now: Moment) {
        if let Some(silence) = &mut self.silence {
            *silence = Silence { since: now, pinged: None };
        }
    }

    /// Stops counting: the connection broke, or no request waits.
    pub(crate) fn stop(&mut self) {
        self.silence = None;
    }

    /// Returns when `elapsed` has an effect.
    pub(crate) fn deadline(&self) -> Moment {
        match (self.limit, self.silence) {
            (Some(limit), Some(Silence { since, pinged })) => {
                pinged.unwrap_or(since).saturating_add(limit / 2)
            }
            _ => Moment::NEVER,
        }
    }

    /// Returns the step that is due, and notes that it was taken.
    pub(crate) fn elapsed(&mut self, now: Moment) -> Option<Due> {
        if now < self.deadline() {
            return None;
        }
        let silence = self.silence.as_mut()?;
        if silence.pinged.is_some() {
            self.stop();
            return Some(Due::GiveUp);
        }
        silence.pinged = Some(now);
        Some(Due::Ping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanoseconds(seconds * 1_000_000_000)
    }

    #[test]
    fn silent_service_gets_a_ping_and_then_no_further_wait() {
        let mut keepalive = Keepalive::new(Some(Duration::from_secs(10)));
        assert_eq!((keepalive.deadline(), keepalive.elapsed(at(100))), (Moment::NEVER, None));
        keepalive.begin(at(100));
        keepalive.begin(at(103));
        assert_eq!((keepalive.deadline(), keepalive.elapsed(at(104))), (at(105), None));
        assert_eq!(keepalive.elapsed(at(106)), Some(Due::Ping));
        assert_eq!((keepalive.deadline(), keepalive.elapsed(at(110))), (at(111), None));
        assert_eq!(keepalive.elapsed(at(111)), Some(Due::GiveUp));
        assert_eq!(keepalive.deadline(), Moment::NEVER);
    }

    #[test]
    fn every_message_breaks_the_silence() {
        let mut keepalive = Keepalive::new(Some(Duration::from_secs(10)));
        keepalive.begin(at(100));
        assert_eq!(keepalive.elapsed(at(105)), Some(Due::Ping));
        keepalive.received(at(109));
        assert_eq!((keepalive.elapsed(at(113)), keepalive.deadline()), (None, at(114)));
        assert_eq!(keepalive.elapsed(at(114)), Some(Due::Ping));
        keepalive.stop();
        assert_eq!(keepalive.deadline(), Moment::NEVER);
    }

    #[test]
    fn silence_without_a_limit_has_no_end() {
        let mut keepalive = Keepalive::new(None);
        keepalive.begin(at(100));
        assert_eq!(keepalive.deadline(), Moment::NEVER);
    }
}
