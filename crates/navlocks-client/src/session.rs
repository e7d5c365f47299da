//! The session at the service: its number, its secret, its lease.

use std::time::Duration;

use navlocks_wire::{Fault, FaultCode, Hello, Limits, Request, Resume, Welcome};

use crate::lease::Lease;
use crate::moment::Moment;

/// A session as the client knows it, from hello to hello. It outlives connections.
#[derive(Debug, Default)]
pub(crate) struct KnownSession {
    number: u32,
    /// The proof that the session belongs to this client, while it can be resumed.
    secret: Option<String>,
    /// The secret of the next session, from its first hello to a welcome.
    chosen: Option<String>,
    epoch: u64,
    lease: Option<Lease>,
    lease_over: Option<Moment>,
    /// The service is a cluster, where a session has one partition.
    pub(crate) is_cluster: bool,
    /// The service knows the message `timed-out`.
    pub(crate) takes_timeouts: bool,
    limits: Option<Limits>,
}

impl KnownSession {
    /// Returns its number at the service; that of the last one while there is none.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Returns the largest epoch of a service so far: a smaller one is that of a service that has a
    /// successor.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the lease, if there is one.
    pub(crate) fn lease(&mut self) -> Option<&mut Lease> {
        self.lease.as_mut()
    }

    /// Returns the length of the lease, if there is one.
    pub(crate) fn lease_length(&self) -> Option<Duration> {
        self.lease.as_ref().map(Lease::length)
    }

    /// Returns true if another connection can resume it.
    pub(crate) fn is_resumable(&self) -> bool {
        self.secret.is_some()
    }

    /// Returns until when the client may take its locks for held.
    pub(crate) fn lease_deadline(&self) -> Moment {
        self.lease.as_ref().map_or(Moment::NEVER, Lease::until)
    }

    /// Returns when the connection counts as dead although it is open, unless the service answers
    /// before.
    pub(crate) fn silent_from(&self) -> Moment {
        self.lease.as_ref().map_or(Moment::NEVER, Lease::silent_from)
    }

    /// Returns when the next ping is due.
    pub(crate) fn ping_at(&self) -> Moment {
        self.lease.as_ref().map_or(Moment::NEVER, Lease::ping_at)
    }

    /// Returns when a service may grant the locks of the latest lease to other clients.
    pub(crate) fn lease_over(&self) -> Option<Moment> {
        self.lease.as_ref().map(Lease::over).or(self.lease_over)
    }

    /// Completes the hello of a new connection: with the proof of this session, or else with a
    /// secret of the next one, if the client draws one.
    pub(crate) fn hello(&mut self, hello: Hello, draw: impl FnOnce() -> Option<String>) -> Hello {
        if let Some(secret) = self.secret.clone() {
            let resume = Resume { session: self.number, secret, epoch: self.epoch };
            return Hello { resume: Some(resume), secret: None, ..hello };
        }
        if self.chosen.is_none() {
            self.chosen = draw();
        }
        Hello { resume: None, secret: self.chosen.clone(), ..hello }
    }

    /// Returns true if this answer to a hello resumes its session.
    pub(crate) fn is_resumed(welcome: &Welcome, hello: &Hello) -> bool {
        let asked = hello.resume.as_ref();
        welcome.resumed && asked.is_some_and(|resume| resume.session == welcome.session)
    }

    /// Takes the answer to a hello that was sent at this moment.
    pub(crate) fn welcomed(&mut self, welcome: &Welcome, sent: Moment) {
        let length = welcome.lease_ms.map(Duration::from_millis);
        *self = Self {
            number: welcome.session,
            secret: Some(welcome.secret.clone()).filter(|secret| !secret.is_empty()),
            chosen: None,
            epoch: welcome.epoch,
            lease: length.map(|length| Lease::new(length, sent)),
            lease_over: None,
            is_cluster: welcome.cluster,
            takes_timeouts: welcome.timed_out,
            limits: Some(welcome.limits),
        };
    }

    /// Ends the session on the side of the client.
    pub(crate) fn lapse(&mut self) {
        let secret = self.secret.take();
        if self.is_cluster && secret.is_some() {
            // The next owner ends the session that had this secret, and does not wait for it.
            self.chosen = secret;
        }
        if let Some(lease) = self.lease.take() {
            self.lease_over = Some(lease.over());
        }
    }

    /// Notes that the service ended the session, and may grant its locks from now on.
    pub(crate) fn ended(&mut self, now: Moment) {
        self.lapse();
        self.lease_over = Some(now);
    }

    /// Checks the length of a message.
    ///
    /// # Errors
    ///
    /// The service would end the session, and then the next.
    pub(crate) fn check_length(&self, text: &str) -> Result<(), Fault> {
        let max = self.max(|limits| limits.message_bytes_max);
        within(max, text.len(), |bytes| {
            format!(
                "this takes a message of {bytes} bytes, and the service takes {max}: use shorter names"
            )
        })
    }

    /// Checks the names and the tag of a request.
    ///
    /// # Errors
    ///
    /// The service would refuse the request.
    pub(crate) fn check_request(&self, request: &Request) -> Result<(), Fault> {
        let Some(limits) = self.limits else { return Ok(()) };
        let names = request.names.0.names();
        let max = limits.names_per_request_max;
        within(max, names.len(), |count| {
            format!("a request of {count} names, and the service takes {max}: request fewer names")
        })?;
        for name in names {
            let max = limits.name_bytes_max;
            within(max, name.len_bytes(), |bytes| {
                let name = shortened(&name.to_string());
                format!(
                    "the name '{name}' has {bytes} bytes, and the service takes {max}: use a shorter one"
                )
            })?;
        }
        let max = limits.tag_bytes_max;
        within(max, request.tag.as_ref().map_or(0, |tag| tag.len_bytes()), |bytes| {
            format!("the tag has {bytes} bytes, and the service takes {max}: use a shorter one")
        })
    }

    /// Checks that the session takes one more request.
    ///
    /// # Errors
    ///
    /// The service would refuse the request.
    pub(crate) fn check_requests(&self, count: usize) -> Result<(), Fault> {
        let max = self.max(|limits| limits.requests_per_session_max);
        within(max, count + 1, |_| {
            format!(
                "the connection has {count} requests, and the service takes {max}: release locks first"
            )
        })
    }

    /// Checks that the session takes one more client.
    ///
    /// # Errors
    ///
    /// The service would refuse the client.
    pub(crate) fn check_clients(&self, count: usize) -> Result<(), Fault> {
        let max = self.max(|limits| limits.clients_per_session_max);
        within(max, count + 1, |_| {
            format!("the connection has {count} clients, and the service takes {max}: end some")
        })
    }

    fn max(&self, limit: fn(&Limits) -> usize) -> usize {
        self.limits.as_ref().map_or(usize::MAX, limit)
    }
}

fn within(max: usize, count: usize, sentence: impl FnOnce(usize) -> String) -> Result<(), Fault> {
    match count <= max {
        true => Ok(()),
        false => Err(Fault::new(FaultCode::Limit, sentence(count))),
    }
}

/// Returns the start of a name, for a sentence.
fn shortened(name: &str) -> String {
    const SHOWN_CHARS: usize = 40;
    match name.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use navlocks_wire::{ToClient, ToService};

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanoseconds(seconds * 1_000_000_000)
    }

    fn hello(session: &mut KnownSession) -> Hello {
        let Ok(ToService::Hello(plain)) = navlocks_wire::read(r#"{"hello":{}}"#) else {
            panic!("no hello")
        };
        session.hello(plain, || Some("drawn".to_owned()))
    }

    /// A welcome to session 7 in this epoch, with a lease of eight seconds.
    fn welcome(epoch: u64, more: &str) -> Welcome {
        let limits = concat!(
            r#""message-bytes-max":9,"name-bytes-max":9,"names-per-request-max":9,"#,
            r#""tag-bytes-max":9,"requests-per-session-max":9,"clients-per-session-max":9"#
        );
        let text = format!(
            r#"{{"welcome":{{"service":"a test","session":7,"secret":"s","epoch":{epoch},{more}"lease-ms":8000,"limits":{{{limits}}}}}}}"#
        );
        match navlocks_wire::read(&text) {
            Ok(ToClient::Welcome(welcome)) => welcome,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn first_hello_has_a_secret_and_repeats_it_until_a_welcome() {
        let mut session = KnownSession::default();
        assert_eq!(hello(&mut session).secret.as_deref(), Some("drawn"));
        let Ok(ToService::Hello(plain)) = navlocks_wire::read(r#"{"hello":{}}"#) else {
            panic!("no hello")
        };
        let again = session.hello(plain, || panic!("it has a secret"));
        assert_eq!((again.secret.as_deref(), again.resume), (Some("drawn"), None));
        session.welcomed(&welcome(3, ""), at(100));
        assert_eq!((session.number(), session.epoch(), session.is_resumable()), (7, 3, true));
        assert!(
            session.check_length("123456789").is_ok()
                && session.check_length("1234567890").is_err()
        );
    }

    #[test]
    fn broken_connection_is_resumed_by_the_secret_and_renews_the_lease() {
        let mut session = KnownSession::default();
        session.welcomed(&welcome(3, ""), at(100));
        assert_eq!(session.lease_deadline(), at(107));
        let resuming = hello(&mut session);
        let proof = Resume { session: 7, secret: "s".into(), epoch: 3 };
        assert_eq!((&resuming.resume, &resuming.secret), (&Some(proof), &None));
        let resumed = welcome(4, r#""resumed":true,"#);
        assert!(KnownSession::is_resumed(&resumed, &resuming));
        assert!(!KnownSession::is_resumed(&welcome(4, ""), &resuming));
        let fresh = hello(&mut KnownSession::default());
        assert!(!KnownSession::is_resumed(&resumed, &fresh));
        session.welcomed(&resumed, at(105));
        assert_eq!((session.lease_deadline(), session.epoch()), (at(112), 4));
    }

    #[test]
    fn lease_that_lapsed_may_be_granted_to_others_an_eighth_later() {
        let mut session = KnownSession::default();
        assert_eq!((session.lease_deadline(), session.lease_over()), (Moment::NEVER, None));
        session.welcomed(&welcome(3, ""), at(100));
        session.lapse();
        assert_eq!(
            (session.lease_deadline(), session.lease_over()),
            (Moment::NEVER, Some(at(108)))
        );
        assert_eq!((session.number(), session.is_resumable()), (7, false));
        session.welcomed(&welcome(3, ""), at(110));
        session.ended(at(112));
        assert_eq!(session.lease_over(), Some(at(112)));
    }

    #[test]
    fn client_of_a_cluster_begins_again_with_its_secret() {
        for (more, secret) in [(r#""cluster":true,"#, "s"), ("", "drawn")] {
            let mut session = KnownSession::default();
            session.welcomed(&welcome(3, more), at(100));
            session.lapse();
            let hello = hello(&mut session);
            assert_eq!((hello.secret.as_deref(), hello.resume), (Some(secret), None));
        }
    }
}
