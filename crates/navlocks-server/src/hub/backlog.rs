//! The backlog: the rest of large inputs, done in parts so that other clients have their turns.

use std::collections::HashSet;
use std::rc::Rc;
use std::time::Instant;
use std::vec;

use navlocks_wire::{Fault, FaultCode};

use super::Hub;
use super::metrics::Reason;
use super::partitions::PartitionIndex;
use super::sessions::{Client, Known};
use super::shares::Share;
use crate::config::{Access, TokenId};

/// The most messages that one turn sends, and the most requests that it ends. The rest follows
/// after other clients had their turns.
pub(crate) const WORK_PER_TURN: usize = 1_000;

/// Work that an input left.
#[derive(Debug)]
pub(crate) enum Unfinished {
    /// A partition has effects that are not sent yet.
    Effects(PartitionIndex),
    /// A session gives up clients or requests.
    Ending(Ending),
    /// Requests in the room may go on to a partition.
    Admission(PartitionIndex),
    /// Sessions of tokens that are gone are over.
    Revocation(Revocation),
}

/// The clients or requests that a session gives up. Its tenant is behind meanwhile.
#[derive(Debug)]
pub(crate) struct Ending {
    session: u32,
    share: Rc<Share>,
    clients: vec::IntoIter<Client>,
    requests: vec::IntoIter<u64>,
}

impl Ending {
    pub(crate) fn of_clients(session: u32, share: Rc<Share>, clients: Vec<Client>) -> Self {
        Self { session, share, clients: clients.into_iter(), requests: Vec::new().into_iter() }
    }

    pub(crate) fn of_requests(session: u32, share: Rc<Share>, requests: Vec<u64>) -> Self {
        Self { session, share, clients: Vec::new().into_iter(), requests: requests.into_iter() }
    }

    /// Returns the clients that its session no longer has, and the session.
    pub(crate) fn clients(&self) -> (u32, &[Client]) {
        (self.session, self.clients.as_slice())
    }

    fn is_over(&self) -> bool {
        self.clients.as_slice().is_empty() && self.requests.as_slice().is_empty()
    }
}

/// The sessions that are still to be looked at after tokens were removed.
#[derive(Debug)]
pub(crate) struct Revocation {
    sessions: vec::IntoIter<u32>,
    /// The tokens that are left.
    tokens: HashSet<TokenId>,
    ended: usize,
}

impl Hub {
    /// Ends these clients and requests: at once as many as one turn takes, and the others in turns.
    /// Returns how much work was done at once.
    pub(super) fn end_in_turns(&mut self, ending: Ending, now: Instant) -> usize {
        if ending.is_over() {
            return 1;
        }
        let is_behind = ending.share.is_behind();
        ending.share.fall_behind();
        if is_behind {
            self.unfinished.push_back(Unfinished::Ending(ending));
            return 1;
        }
        self.end_some(ending, now)
    }

    /// Ends the sessions of tokens that are gone, in turns.
    pub(crate) fn end_unknown(&mut self, access: &Access, now: Instant) {
        let (sessions, tokens) = (self.sessions.numbers().into_iter(), access.ids().collect());
        self.revoke_some(Revocation { sessions, tokens, ended: 0 }, now);
        self.settle(now);
    }

    /// Looks at as many sessions as one turn takes, and ends those whose tokens are gone.
    fn revoke_some(&mut self, mut revocation: Revocation, now: Instant) {
        let Revocation { sessions, tokens, ended } = &mut revocation;
        let mut work = 0;
        while work < WORK_PER_TURN
            && let Some(number) = sessions.next()
        {
            work += 1;
            let token = self.sessions.get(number).and_then(|session| session.peer.token);
            if token.is_some_and(|token| !tokens.contains(&token)) {
                work += self.end_without_slow(number, Some(removed_token()), now);
                *ended += 1;
            }
        }
        if sessions.as_slice().is_empty() {
            tracing::info!(ended, "sessions whose tokens are gone have ended");
        } else {
            self.unfinished.push_back(Unfinished::Revocation(revocation));
        }
    }

    /// Does one turn of the work that an earlier input left: one that grants a lock to thousands of
    /// waiters, for example. Returns true if more is left; no other input should come before that.
    pub fn go_on(&mut self, now: Instant) -> bool {
        match self.unfinished.pop_front() {
            Some(Unfinished::Effects(index)) => {
                let (partitions, mut context) = self.context(now);
                partitions[index].go_on(&mut context);
                self.settle(now);
            }
            Some(Unfinished::Ending(ending)) => {
                self.end_some(ending, now);
                self.settle(now);
            }
            Some(Unfinished::Admission(partition)) => {
                self.admit_to(partition, WORK_PER_TURN, now);
                self.settle(now);
            }
            Some(Unfinished::Revocation(revocation)) => {
                self.revoke_some(revocation, now);
                self.settle(now);
            }
            None => {}
        }
        !self.unfinished.is_empty()
    }

    /// Ends as many of these clients and requests as one turn takes. Returns how much work it was.
    fn end_some(&mut self, mut ending: Ending, now: Instant) -> usize {
        let mut work = 0;
        while work < WORK_PER_TURN
            && let Some(done) = self.end_next(&mut ending, now)
        {
            work += done;
        }
        if ending.is_over() {
            ending.share.catch_up();
        } else {
            self.unfinished.push_back(Unfinished::Ending(ending));
        }
        work
    }

    /// Ends the next client or request. Returns how much work that was; none if nothing is left, or
    /// if its partition must first send the effects of an earlier one.
    fn end_next(&mut self, ending: &mut Ending, now: Instant) -> Option<usize> {
        let number = ending.session;
        if let Some(client) = ending.clients.as_slice().first() {
            let messages = self.messages_unless_behind(client.partition)?;
            let client = ending.clients.next()?;
            let ended = self.end_client(&client, now);
            if let Some(session) = self.sessions.get_mut(number) {
                for request in &ended {
                    session.requests.remove(*request);
                }
            }
            let sent = self.partitions[client.partition].messages.saturating_sub(messages);
            return Some(1 + ended.len() + sent);
        }
        let &request = ending.requests.as_slice().first()?;
        let known = self.sessions.get(number).and_then(|session| session.requests.get(request));
        let mut work = 1;
        if let Some(Known::Live { partition, .. }) = known {
            let messages = self.messages_unless_behind(partition)?;
            self.give_up(number, request, Reason::Aborted, now);
            work += self.partitions[partition].messages - messages;
        } else {
            self.give_up(number, request, Reason::Aborted, now);
        }
        ending.requests.next();
        Some(work)
    }

    /// Returns how many messages a partition has sent, unless more wait to be sent.
    fn messages_unless_behind(&self, index: PartitionIndex) -> Option<usize> {
        let partition = &self.partitions[index];
        (!partition.is_behind()).then_some(partition.messages)
    }
}

fn removed_token() -> Fault {
    let text = "the access token was removed: ask the operator of the service for another one";
    Fault::new(FaultCode::Unauthorized, text)
}

#[cfg(test)]
mod tests {
    use navlocks_core::DeadlockPolicy;
    use navlocks_wire as wire;

    use super::*;
    use crate::config::Limits;
    use crate::hub::{Outbox, Peer};

    /// More sessions than one turn ends.
    const MANY: usize = 5 * WORK_PER_TURN;

    fn join(hub: &mut Hub, token: TokenId, outbox: &Outbox) -> u32 {
        let wire::ToService::Hello(hello) = read(r#"{"hello":{}}"#) else { panic!("not hello") };
        let peer = Rc::new(Peer::remote("tenant", "").with_token(Some(token)));
        hub.hello(&peer, &hello, outbox, Instant::now()).expect("welcome").0
    }

    fn read(text: &str) -> wire::ToService {
        wire::read(text).expect("a message")
    }

    #[test]
    fn sessions_of_a_removed_token_end_in_turns() {
        let access = Access::from_text("0123456789abcdef-1").expect("tokens");
        let left = Access::from_text("0123456789abcdef-2").expect("tokens");
        let first = access.ids().next().expect("a token");
        let second = left.ids().next().expect("a token");
        let mut hub =
            Hub::without_store(Limits::default(), DeadlockPolicy::Ignore).expect("a clock");
        let outboxes: Vec<Outbox> = (0..=MANY).map(|_| Outbox::new(1 << 20)).collect();
        let mut numbers = Vec::new();
        for outbox in &outboxes[..MANY] {
            let number = join(&mut hub, first, outbox);
            let request = r#"{"request":{"id":1,"names":["a"],"mode":"shared"}}"#;
            hub.message(number, read(request), Instant::now()).expect("it is taken");
            numbers.push(number);
        }
        let stays = join(&mut hub, second, &outboxes[MANY]);
        // A session that has shown another token meanwhile goes on.
        hub.end_unknown(&left, Instant::now());
        let shown = *numbers.iter().find(|&&it| hub.sessions.get(it).is_some()).expect("one left");
        if let Some(session) = hub.sessions.get_mut(shown) {
            session.peer = Rc::new(Peer::remote("tenant", "").with_token(Some(second)));
        }
        let (mut before, mut turns) = (MANY + 1, 0);
        loop {
            let now = hub.sessions.len();
            assert!(before - now <= WORK_PER_TURN, "{} sessions in one go", before - now);
            hub.check_invariants();
            (before, turns) = (now, turns + 1);
            if !hub.go_on(Instant::now()) {
                break;
            }
        }
        assert!(turns > MANY / WORK_PER_TURN, "only {turns} turns");
        let mut living = hub.sessions.numbers();
        living.sort_unstable();
        let mut expected = [stays, shown];
        expected.sort_unstable();
        assert_eq!(living, expected);
        let fault = outboxes[usize::from(numbers[0] == shown)].ending().expect("an end");
        assert_eq!(fault.code, FaultCode::Unauthorized);
    }
}
