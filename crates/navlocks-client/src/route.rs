//! The next address that a session dials.
//!
//! ```text
//!   the last good address, then the list ──▶ node ──moved, with an address──▶ owner
//!                   ▲                         ▲                                 │
//!                   └── moved, without one ───┴──── carry ◀── out of reach ─────┘
//! ```
//!
//! A node that does not own the session's locks names the one that does. If that one is out of
//! reach, or must not get the token, the first node carries the messages.

use std::collections::VecDeque;
use std::time::Duration;

use crate::addresses::Addresses;
use crate::moment::Moment;
use crate::url::Url;
use navlocks_wire::{Fault, FaultCode, Hello};

/// How often in a row an address that a node named is dialled without a pause: two nodes may
/// disagree for a moment.
const HOPS_MAX: u32 = 4;

/// How long an owner that was out of reach is not dialled again, at first and at last.
const UNREACHABLE_MIN: Duration = Duration::from_secs(5);
const UNREACHABLE_MAX: Duration = Duration::from_secs(300);

/// The most nodes that a hello names as out of reach.
const NAMED_MAX: usize = 8;

/// For the way to an owner, where another node can carry the messages. A session has its lease for
/// that: an owner with little processor time takes long to answer, and being carried costs more.
const OWNER_MAX: Duration = Duration::from_secs(1);
const OWNER_LEASED_MAX: Duration = Duration::from_secs(4);

/// For the way to an address, and for the way to one of several.
const DIAL_MAX: Duration = Duration::from_secs(10);
const DIAL_ONE_MIN: Duration = Duration::from_secs(2);
const DIAL_LEASED_MIN: Duration = Duration::from_millis(250);

/// The least time for a node to answer the hello of a session whose lease goes by.
const WELCOME_LEASED_MIN: Duration = Duration::from_millis(250);

/// An address, and why it is dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The address.
    pub(crate) url: Url,
    role: Role,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    /// It is in the list, or was good before.
    Known,
    /// Another node named it.
    Owner { named_by: Url },
    /// It carries the messages to an owner out of reach.
    Relay,
}

/// When the next address is dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// At once.
    AtOnce,
    /// After the next pause.
    AfterPause,
}

/// An attempt that failed.
#[derive(Clone, Debug)]
pub(crate) struct DialError {
    /// The answer of a node that refuses the session; none if the node is out of reach.
    pub(crate) refused: Option<Fault>,
    /// The node took the connection, and the hello was sent.
    pub(crate) greeted: bool,
}

/// A node that was out of reach.
#[derive(Debug)]
struct Unreachable {
    url: Url,
    /// Until then it is not dialled when another node names it.
    until: Moment,
    /// How long that was after the last attempt.
    pause: Duration,
}

/// The way of a session to its service.
#[derive(Debug)]
pub(crate) struct Route {
    addresses: Addresses,
    /// The session has a token that must not go to other machines unencrypted.
    hides_token: bool,
    /// The list in an order of this client: those of a dead node spread over all others.
    order: Vec<Url>,
    target: Target,
    /// The addresses that are dialled before the next pause.
    round: VecDeque<Url>,
    /// Rounds without an answer.
    rounds: u32,
    /// The address that was last welcoming.
    good: Option<Url>,
    hops: u32,
    /// The nodes that were out of reach.
    unreachable: Vec<Unreachable>,
    /// A node has answered `moved`.
    is_cluster: bool,
}

impl Route {
    /// Begins with the addresses in an order that the random number chooses.
    pub(crate) fn new(addresses: &Addresses, hides_token: bool, random: u64) -> Self {
        let order = shuffled(addresses.list(), random);
        let target = Target { url: order[0].clone(), role: Role::Known };
        let is_cluster = order.len() > 1;
        let mut route = Self {
            addresses: addresses.clone(),
            hides_token,
            order,
            target,
            round: VecDeque::new(),
            rounds: 0,
            good: None,
            hops: 0,
            unreachable: Vec::new(),
            is_cluster,
        };
        route.begin_round();
        route
    }

    /// Returns the next address.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Returns true if several nodes may be dialled.
    pub(crate) fn is_cluster(&self) -> bool {
        self.is_cluster
    }

    /// Returns how long the way to the target may take, for a session with this lease.
    pub(crate) fn limit(&self, lease: Option<Duration>) -> Duration {
        let eighth = lease.map(|lease| lease / 8);
        match self.target.role {
            Role::Owner { .. } => eighth.map_or(OWNER_MAX, |eighth| eighth.min(OWNER_LEASED_MAX)),
            _ if !self.is_cluster => DIAL_MAX,
            _ => {
                let count = u32::try_from(self.addresses.list().len()).unwrap_or(u32::MAX);
                let even = (DIAL_MAX / count).max(DIAL_ONE_MIN);
                let one = eighth.map_or(even, |eighth| eighth.clamp(DIAL_LEASED_MIN, even));
                // A network that is slower than that is given more time in each round.
                one.saturating_mul(1 << self.rounds.min(6)).min(DIAL_MAX)
            }
        }
    }

    /// The target has welcomed the session.
    pub(crate) fn reached(&mut self) {
        let good = self.target.url.clone();
        self.unreachable.retain(|it| it.url != good);
        self.good = Some(good);
        self.rounds = 0;
        self.begin_round();
    }

    /// A connection was there for long enough that a further `moved` is no quarrel of nodes.
    pub(crate) fn settled(&mut self) {
        self.hops = 0;
    }

    /// Returns true if no further attempt can succeed. The refusal of an owner before the hello is
    /// none of those: the node that named it can carry the messages.
    pub(crate) fn is_final(&self, error: &DialError) -> bool {
        let is_owner = matches!(self.target.role, Role::Owner { .. });
        let Some(fault) = &error.refused else { return false };
        // A proxy answers a handshake so while its service restarts.
        let is_proxy = self.good.is_some() && fault.code == FaultCode::Other;
        fault.code.is_final() && (error.greeted || !is_owner && !is_proxy)
    }

    /// Chooses the next target after an attempt that failed.
    pub(crate) fn failed(&mut self, error: &DialError, now: Moment) -> Next {
        if let Some(Fault { code: FaultCode::Moved, to, .. }) = &error.refused {
            let Target { url, role } = self.target.clone();
            return self.follow(url, role == Role::Relay, to.as_deref(), now);
        }
        if !error.greeted && self.is_cluster {
            self.note_unreachable(now);
        }
        match (&self.target.role, error.greeted) {
            (Role::Owner { named_by }, false) => {
                self.target = Target { url: named_by.clone(), role: Role::Relay };
                Next::AtOnce
            }
            _ => self.advance(),
        }
    }

    /// Notes that the target is out of reach: for longer, the more often in a row that is so.
    fn note_unreachable(&mut self, now: Moment) {
        let url = self.target.url.clone();
        let last = self.unreachable.iter().position(|it| it.url == url);
        let last = last.map(|at| self.unreachable.remove(at).pause * 2);
        let pause = last.unwrap_or(UNREACHABLE_MIN).min(UNREACHABLE_MAX);
        self.unreachable.push(Unreachable { url, until: now.saturating_add(pause), pause });
        if self.unreachable.len() > NAMED_MAX {
            self.unreachable.remove(0);
        }
    }

    /// Returns the nodes that are not dialled when another node names them.
    fn avoided(&self, now: Moment) -> impl Iterator<Item = &Unreachable> {
        self.unreachable.iter().filter(move |it| now < it.until)
    }

    /// Completes a hello to the target with what a node must know to lead the client on.
    pub(crate) fn complete(&self, hello: Hello, now: Moment) -> Hello {
        let carry = self.target.carries();
        let unreachable = self.avoided(now).map(|it| it.url.to_string()).collect();
        let left = self.avoided(now).map(|it| it.until.saturating_since(now)).max();
        let home_ms = left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        Hello { carry, unreachable, home_ms, ..hello }
    }

    /// Returns how long a node may take to answer the hello of a session with this lease.
    pub(crate) fn welcome_limit(&self, lease: Option<Duration>, now: Moment) -> Option<Duration> {
        // A node keeps the hello until the locks of a node out of reach have another owner.
        let part = if self.avoided(now).next().is_none() { 4 } else { 2 };
        lease.map(|lease| (lease / part).max(WELCOME_LEASED_MIN))
    }

    /// Chooses the next target after the node that had welcomed the session said `moved`.
    pub(crate) fn moved(&mut self, to: Option<&str>, now: Moment) -> Next {
        match self.good.clone() {
            Some(from) => {
                // A node that carried sends its client home.
                self.unreachable.iter_mut().for_each(|it| it.until = now);
                self.follow(from, false, to, now)
            }
            None => self.advance(),
        }
    }

    /// Follows a node to the owner that it named, or lets the node carry the messages there.
    fn follow(&mut self, from: Url, carried: bool, to: Option<&str>, now: Moment) -> Next {
        self.is_cluster = true;
        self.rounds = 0;
        let owner = to.and_then(|to| Url::parse(to).ok()).filter(|owner| *owner != from);
        let Some(owner) = owner.filter(|_| self.hops < HOPS_MAX) else {
            self.hops = 0;
            self.advance();
            return Next::AfterPause;
        };
        self.hops += 1;
        let is_unreachable = self.avoided(now).any(|it| it.url == owner);
        if self.may_follow(&owner) && !is_unreachable {
            self.target = Target { url: owner, role: Role::Owner { named_by: from } };
            Next::AtOnce
        } else if carried {
            self.advance();
            Next::AfterPause
        } else {
            self.target = Target { url: from, role: Role::Relay };
            Next::AtOnce
        }
    }

    /// Returns true if the owner may get what the listed nodes get: everything encrypted, if it
    /// was, and the token. A client of a Unix socket has shown none, so it stays there.
    fn may_follow(&self, owner: &Url) -> bool {
        let is_weaker = self.addresses.are_encrypted() && !owner.is_encrypted();
        let is_leak = self.hides_token && owner.is_in_clear().is_some();
        let is_web = matches!(owner, Url::Web { .. }) && self.addresses.socket().is_none();
        is_web && !is_weaker && !is_leak
    }

    /// Goes on with the next known address; after the last one, from the start after a pause.
    fn advance(&mut self) -> Next {
        if let Some(url) = self.round.pop_front() {
            self.target = Target { url, role: Role::Known };
            return Next::AtOnce;
        }
        self.rounds += 1;
        self.begin_round();
        Next::AfterPause
    }

    /// Begins with the address that was last good.
    fn begin_round(&mut self) {
        let others = self.order.iter().filter(|url| Some(*url) != self.good.as_ref());
        self.round = self.good.iter().chain(others).cloned().collect();
        if let Some(url) = self.round.pop_front() {
            self.target = Target { url, role: Role::Known };
        }
    }
}

/// Returns the addresses in an order that the random number chooses: as they are by zero.
fn shuffled(urls: &[Url], mut random: u64) -> Vec<Url> {
    let mut urls = urls.to_vec();
    for first in 0..urls.len() {
        let left = (urls.len() - first) as u64;
        urls.swap(first, first + (random % left) as usize);
        random /= left;
    }
    urls
}

impl DialError {
    /// Returns true if the node does not own the locks.
    pub(crate) fn is_moved(&self) -> bool {
        self.refused.as_ref().is_some_and(|fault| fault.code == FaultCode::Moved)
    }
}

impl Target {
    /// Returns true if the node is to carry the messages to the owner.
    pub(crate) fn carries(&self) -> bool {
        self.role == Role::Relay
    }
}

/// Returns the fault of a service that answers the handshake with this status and sentence.
pub fn code_of_status(status: u16, sentence: &str) -> FaultCode {
    match status {
        401 => FaultCode::Unauthorized,
        403 => FaultCode::ForbiddenOrigin,
        426 => FaultCode::Version,
        429 | 503 => FaultCode::Limit,
        // A proxy answers so while its service restarts.
        500..=599 => FaultCode::Internal,
        // A node of another cluster. A proxy that has no such host answers the same status.
        421 if sentence.contains("cluster") => FaultCode::BadState,
        _ => FaultCode::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const NOW: Moment = Moment::from_nanoseconds(1_000_000_000);

    fn route(list: &str) -> Route {
        Route::new(&Addresses::parse(list).unwrap(), false, 0)
    }

    fn refused(code: FaultCode, greeted: bool) -> DialError {
        DialError { refused: Some(Fault::new(code, "no")), greeted }
    }

    fn moved(to: Option<&str>) -> DialError {
        DialError { refused: Some(Fault::moved(to.map(String::from))), greeted: true }
    }

    fn unreachable() -> DialError {
        DialError { refused: None, greeted: false }
    }

    fn dialled(route: &Route) -> (String, bool) {
        (route.target().url.to_string(), route.target().carries())
    }

    #[test]
    fn round_dials_each_address_once_and_begins_with_the_last_good_one() {
        let mut route = route("ws://a,b,c");
        let mut rounds = Vec::new();
        for _ in 0..2 {
            let mut round = vec![dialled(&route).0];
            while route.failed(&unreachable(), NOW) == Next::AtOnce {
                round.push(dialled(&route).0);
            }
            rounds.push(round.clone());
            round.sort();
            assert_eq!(round, ["ws://a/", "ws://b/", "ws://c/"]);
        }
        assert_eq!(rounds[0], rounds[1]);
        while dialled(&route).0 != rounds[0][1] {
            route.failed(&unreachable(), NOW);
        }
        route.reached();
        assert_eq!(dialled(&route).0, rounds[0][1]);
        assert_eq!(route.failed(&unreachable(), NOW), Next::AtOnce);
        assert_eq!(dialled(&route).0, rounds[0][0]);
    }

    #[test]
    fn clients_of_one_list_begin_evenly_and_spread_evenly_when_a_node_is_gone() {
        let addresses = Addresses::parse("ws://a,b,c,d").unwrap();
        let mut firsts = HashMap::new();
        let mut seconds = HashMap::new();
        for random in 0..24 {
            let mut route = Route::new(&addresses, false, random);
            let first = dialled(&route).0;
            route.failed(&unreachable(), NOW);
            *seconds.entry((first.clone(), dialled(&route).0)).or_insert(0) += 1;
            *firsts.entry(first).or_insert(0) += 1;
        }
        assert!(firsts.len() == 4 && firsts.values().all(|&count| count == 6), "{firsts:?}");
        assert!(seconds.len() == 12 && seconds.values().all(|&count| count == 2), "{seconds:?}");
    }

    /// Shared with the JavaScript client, which has the same route.
    const STORIES: &str = include_str!("../tests/routes.txt");

    #[test]
    fn route_follows_the_stories_of_both_clients() {
        let mut told = None;
        let lines = STORIES.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        for (index, line) in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["route", list, flags @ ..] = &words[..] {
                let hides_token = flags.contains(&"token") && !flags.contains(&"clear");
                told = Some(Route::new(&Addresses::parse(list).unwrap(), hides_token, 0));
                continue;
            }
            let Some(route) = &mut told else { panic!("no route") };
            let known = |to: &'static str| Some(to).filter(|to| *to != "-");
            let next = match words[..] {
                ["moved", to, ":", ..] => Some(route.failed(&moved(known(to)), NOW)),
                ["left", to, ":", ..] => Some(route.moved(known(to), NOW)),
                ["gone", ":", ..] => Some(route.failed(&unreachable(), NOW)),
                ["refused", ":", ..] => {
                    Some(route.failed(&refused(FaultCode::Unauthorized, false), NOW))
                }
                ["reached", ":", ..] => {
                    route.reached();
                    None
                }
                ["final", when, ":", answer] => {
                    let failure = refused(FaultCode::Unauthorized, when == "after");
                    assert_eq!(route.is_final(&failure), answer == "yes", "line {}", index + 1);
                    continue;
                }
                ["status", code, word, ":", answer] => {
                    let code = code_of_status(code.parse().unwrap(), word);
                    let found = route.is_final(&refused(code, false));
                    assert_eq!(found, answer == "yes", "line {}", index + 1);
                    continue;
                }
                ["way", ":", unreachable] => {
                    let hello = route.complete(Hello::default(), NOW);
                    let named = hello.unreachable.first().map_or("-", String::as_str);
                    assert_eq!(named, unreachable, "line {}", index + 1);
                    assert_eq!(hello.home_ms.is_some(), unreachable != "-", "line {}", index + 1);
                    continue;
                }
                ["limit", lease, ":", limit] => {
                    let millis = |text: &str| Duration::from_millis(text.parse().unwrap());
                    let found = route.limit(known(lease).map(millis));
                    assert_eq!(found, millis(limit), "line {}", index + 1);
                    continue;
                }
                _ => panic!("line {}: {line}", index + 1),
            };
            let next = match next {
                Some(Next::AtOnce) => "at-once",
                Some(Next::AfterPause) => "pause",
                None => "-",
            };
            let carry = if route.target().carries() { " carry" } else { "" };
            let found = format!("{next} {}{carry}", route.target().url);
            assert!(line.ends_with(&format!(": {found}")), "line {}: {found}", index + 1);
        }
    }

    #[test]
    fn owner_out_of_reach_is_dialled_again_after_longer_and_longer_pauses() {
        let mut route = route("ws://a");
        let mut now = NOW;
        for seconds in [5, 10, 20, 40, 80, 160, 300, 300] {
            route.failed(&moved(Some("ws://b")), now);
            assert_eq!(dialled(&route), ("ws://b/".into(), false));
            route.failed(&unreachable(), now);
            route.reached();
            route.settled();
            let hello = route.complete(Hello::default(), now);
            assert_eq!(hello.home_ms, Some(seconds * 1000));
            now = now.saturating_add(Duration::from_secs(seconds - 1));
            route.failed(&moved(Some("ws://b")), now);
            assert_eq!(dialled(&route), ("ws://a/".into(), true));
            now = now.saturating_add(Duration::from_secs(1));
        }
    }

    #[test]
    fn way_to_a_node_may_take_longer_after_a_round_in_vain() {
        let lease = Some(Duration::from_secs(8));
        let mut route = route("ws://a,b,c,d,e");
        let first = route.limit(lease);
        for _ in 0..5 {
            route.failed(&unreachable(), NOW);
        }
        assert_eq!(route.limit(lease), 2 * first);
    }
}
