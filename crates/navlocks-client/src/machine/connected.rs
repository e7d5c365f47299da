//! The end of a connection, and the session without one.

use std::time::Duration;

use navlocks_wire::{Fault, FaultCode, ToService};

use super::{Command, LinkState, Machine, Phase};
use crate::keepalive::{Due, SIGN_OF_LIFE};
use crate::moment::Moment;
use crate::requests::{LossCause, Over};
use crate::route::{DialError, Next};

/// How often in a row a service may end a session because of the client's messages, until the users
/// get the fault.
const FAULTS_MAX: u32 = 2;

/// A session that lasted so long had another cause than the one before.
const FAULTS_FORGOTTEN: Duration = Duration::from_secs(60);

/// The longest time for the service to close after its last message, and to read ours.
const CLOSING_MAX: Duration = Duration::from_secs(1);

impl<T> Machine<T> {
    /// Notes that the connection broke, or that the driver has dropped it.
    pub fn broken(&mut self, now: Moment) {
        match self.phase {
            Phase::Dialed { .. } => self.attempt_failed(refused_by_none(false), false, now),
            Phase::Greeting(ref attempt) => {
                let greeted = attempt.has_opened();
                self.fail_passed();
                self.attempt_failed(refused_by_none(greeted), false, now);
            }
            Phase::Connected { since, .. } | Phase::Draining { since, .. } => {
                self.connection_ended(since, now);
            }
            _ => {}
        }
    }

    /// Notes that the service closed the connection.
    pub fn closed(&mut self, now: Moment) {
        match self.phase {
            // A node closes after a `bye` when no successor would wait for the session.
            Phase::Connected { .. } if self.link == LinkState::Leaving => self.end(),
            _ => self.broken(now),
        }
    }

    /// Ends the session: the client leaves, and its locks are lost before the service can grant
    /// them to other clients.
    pub fn leave(&mut self, now: Moment) {
        self.presence = None;
        if self.link.is_over() || self.link == LinkState::Leaving {
            return;
        }
        self.end_requests_of(None);
        self.send(&ToService::Bye);
        self.set_link(LinkState::Leaving);
        match self.phase {
            Phase::Connected { .. } => self.close(now),
            Phase::Dialed { .. } | Phase::Dialing { .. } | Phase::Greeting(_) if !self.persists => {
            }
            _ if self.may_end() => {
                self.discard_commands();
                self.commands.push_back(Command::Drop);
                self.end();
            }
            _ => {}
        }
    }

    /// Ends the session because the driver ends. A message that is left goes out if it can.
    pub fn shut_down(&mut self) {
        self.send(&ToService::Bye);
        self.end();
    }

    /// Closes behind the last messages: they travel with the close frame, and the service is woken
    /// once. The next owner of a cluster's locks may have to get them instead.
    pub(super) fn close(&mut self, now: Moment) {
        if let Phase::Connected { closing, .. } = &mut self.phase {
            *closing = Some(now.saturating_add(CLOSING_MAX));
            if self.may_end() {
                self.commands.push_back(Command::Close);
            }
        }
    }

    /// Takes the reason why the service closes the connection.
    pub(super) fn receive_error(&mut self, fault: Fault, now: Moment) {
        let Phase::Connected { since, .. } = self.phase else { return };
        if self.link == LinkState::Leaving {
            return self.drop_connection(now);
        }
        let is_moved = fault.code == FaultCode::Moved;
        match fault.code {
            // The session goes on with the successor; until then its locks are in doubt.
            FaultCode::ShuttingDown | FaultCode::Moved if self.session.is_resumable() => {
                self.link_down();
            }
            // A hello of an earlier attempt was late in the network. The next time it is another
            // client with this secret, and one of them must lose the locks.
            FaultCode::Replaced if self.session.is_resumable() && self.is_replaced_first(now) => {
                self.link_down();
            }
            // The session ends: the service releases its locks, and a successor need not wait for
            // this client.
            FaultCode::LeaseLapsed => {
                self.lapse(&LossCause::LeaseLapsed);
                self.session.ended(now);
            }
            _ => self.lapse(&LossCause::ServiceGone),
        }
        self.last_fault = Some(fault);
        if is_moved {
            // The owner of the locks is dialled at once, whatever becomes of this connection.
            return self.drop_connection(now);
        }
        self.discard_commands();
        // Closing with unread input would look like a broken connection to the service.
        self.commands.push_back(Command::Drain);
        self.phase = Phase::Draining { since, until: now.saturating_add(CLOSING_MAX) };
    }

    /// Returns true if no later connection has replaced one of this client for a while.
    fn is_replaced_first(&mut self, now: Moment) -> bool {
        let earlier = self.replaced.replace(now);
        earlier.is_none_or(|at| now.saturating_since(at) >= FAULTS_FORGOTTEN)
    }

    /// Drops the connection, and tries another one.
    pub(super) fn drop_connection(&mut self, now: Moment) {
        self.discard_commands();
        self.commands.push_back(Command::Drop);
        self.broken(now);
    }

    /// Handles the moments of a connection.
    pub(super) fn check_connection(&mut self, now: Moment) {
        let Phase::Connected { closing, .. } = self.phase else { return };
        // A network can swallow one connection and carry another: the session resumes over that
        // one.
        if now >= closing.unwrap_or(Moment::NEVER) || now >= self.session.silent_from() {
            return self.drop_connection(now);
        }
        if now >= self.session.ping_at() {
            self.ping(now);
        }
        if now >= self.keepalive.deadline() {
            if !self.is_waited_for() {
                self.keepalive.stop();
            }
            match self.keepalive.elapsed(now) {
                Some(Due::Ping) => self.send(&ToService::Ping(SIGN_OF_LIFE)),
                Some(Due::GiveUp) => self.give_up_waiting(),
                None => {}
            }
        }
    }

    fn ping(&mut self, now: Moment) {
        if let Some(lease) = self.session.lease() {
            let number = lease.ping(now);
            self.send(&ToService::Ping(number));
        }
    }

    fn is_waited_for(&self) -> bool {
        !self.queries.is_empty() || self.requests.values().any(|request| request.is_pending())
    }

    /// Ends all waits. If the service continues, it receives that the client wants nothing of it
    /// any more.
    fn give_up_waiting(&mut self) {
        let pending = self.pending();
        for &number in &pending {
            self.end_request(number, Over::Unreachable);
        }
        self.give_up_queries(|_| true);
        for number in pending {
            self.send(&ToService::End(number));
        }
    }

    /// Goes on without the connection, which began at this moment.
    fn connection_ended(&mut self, since: Moment, now: Moment) {
        if self.may_end() {
            return self.end();
        }
        self.discard_commands();
        self.keepalive.stop();
        self.link_down();
        self.give_up_queries(|query| query.is_in_doubt());
        // Without a secret the session cannot be resumed.
        if !self.session.is_resumable() {
            self.lapse(&LossCause::ServiceGone);
        }
        if self.may_end() {
            return self.end();
        }
        let lasted = now.saturating_since(since);
        if self.backoff.after(lasted) {
            self.route.settled();
        }
        self.starts.after(lasted);
        self.down_since = now;
        if lasted >= FAULTS_FORGOTTEN {
            self.faults = 0;
        }
        if let Some(fault) = self.last_fault.take() {
            if fault.code == FaultCode::Moved {
                if self.route.moved(fault.to.as_deref(), now) == Next::AtOnce {
                    self.backoff.restart();
                }
            } else if fault.code.is_of_client() {
                self.faults += 1;
                // The next session begins with the same requests.
                if self.faults == FAULTS_MAX {
                    self.give_up(LinkState::Refused(fault));
                    return self.end();
                }
            }
        }
        self.next(Next::AfterPause, now);
    }
}

/// An attempt that broke off without an answer.
fn refused_by_none(greeted: bool) -> DialError {
    DialError { refused: None, greeted }
}
