//! The service: the hub, its folder, the connections of its clients, and at most one bug.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_core::Wait;
use navlocks_server::hub::{Frame, Hub, Outbox, Peer};
use navlocks_server::{DeadlockPolicy, Limits};
use navlocks_tests::chaos::Dice;
use navlocks_wire::{self as wire, ToClient, ToService};

use crate::sessions::bug::Bug;

/// A client, by its index in the world.
pub(super) type ClientNo = usize;
/// A connection, by its index in the list.
pub(super) type LinkNo = usize;

/// The lease of a session over a network.
pub(super) const LEASE: u64 = 4000;

/// A steal is forgotten if the service is killed within this time.
const SOON: u64 = 60;

pub(super) struct Service {
    folder: PathBuf,
    begin: Instant,
    /// The hub; none while no service runs.
    hub: Option<Hub>,
    /// How often it was started.
    life: u32,
    links: Vec<Link>,
    bug: Option<Bug>,
    /// True if the bug has struck.
    pub(super) struck: bool,
    /// The table of requests before the latest steal, and the time of that steal.
    before_steal: Option<(Vec<u8>, u64)>,
}

struct Link {
    client: ClientNo,
    /// The number of the service at the other end, and zero once it has nothing more to send.
    life: u32,
    began: u32,
    peer: Rc<Peer>,
    outbox: Outbox,
    session: Option<(u32, u64)>,
    /// True if no more messages are taken from it.
    over: bool,
    /// True if the client is about to claim from a service that was restarted.
    claims: bool,
    /// A claimed request that the bug takes for a new one.
    delayed: Option<wire::Request>,
}

/// A message of the service.
pub(super) struct Sent {
    pub(super) link: LinkNo,
    pub(super) client: ClientNo,
    pub(super) message: ToClient,
}

impl Service {
    pub(super) fn new(folder: &Path, bug: Option<Bug>) -> Self {
        Self {
            folder: folder.to_path_buf(),
            begin: Instant::now(),
            hub: None,
            life: 0,
            links: Vec::new(),
            bug,
            struck: false,
            before_steal: None,
        }
    }

    fn at(&self, now: u64) -> Instant {
        self.begin + Duration::from_millis(now)
    }

    pub(super) fn is_up(&self) -> bool {
        self.hub.is_some()
    }

    /// Starts it. With a witness, a client can notice that its session is forgotten.
    pub(super) fn start(&mut self, now: u64, witnessed: bool) {
        self.life += 1;
        let lease = Duration::from_millis(LEASE);
        let limits = Limits::default().with(|limits| {
            (limits.lease_min, limits.lease_default) = (lease, lease);
            limits.tokens_reserved_ahead = 1 << 10;
        });
        let at = self.at(now);
        let hub = Hub::with_state_folder(&self.folder, limits, DeadlockPolicy::default(), at);
        self.hub = Some(hub.expect("the folder can be used"));
        // Once the bug has struck, this is the correct service again.
        if witnessed && self.would_forget() {
            self.end_unclaimed(now);
        }
    }

    /// Ends all sessions that were not claimed: a bug.
    fn end_unclaimed(&mut self, now: u64) {
        let at = self.at(now);
        let Some(hub) = &mut self.hub else { return };
        for (session, _) in self.links.iter().filter_map(|link| link.session) {
            hub.end_unclaimed(session, at);
        }
        self.struck = true;
    }

    /// Returns true if the bug needs the service to be killed now.
    pub(super) fn wants_to_die(&self) -> bool {
        self.before_steal.is_some()
    }

    /// Returns true if the bug strikes when the service is killed before the last claim.
    pub(super) fn would_forget(&self) -> bool {
        self.bug == Some(Bug::ForgetGrace) && !self.struck && self.life > 1 && self.is_up()
    }

    /// Kills it. Its tables stay unchanged, unless the bug is in them.
    pub(super) fn kill(&mut self, now: u64) {
        self.hub = None;
        if let Some((table, stolen)) = self.before_steal.take()
            && now <= stolen + SOON
        {
            fs::write(self.folder.join("requests.table"), table).expect("a table");
            self.struck = true;
        }
    }

    /// Ends leases that are over.
    pub(super) fn pass_time(&mut self, now: u64) {
        let at = self.at(now);
        if let Some(hub) = &mut self.hub {
            hub.check_leases(at);
            hub.check_unclaimed(at);
            hub.check_invariants();
        }
    }

    /// Connects a client.
    pub(super) fn connect(&mut self, client: ClientNo, local: bool) -> LinkNo {
        let peer = if local { Peer::local() } else { Peer::remote("", "") };
        self.links.push(Link {
            client,
            life: self.life,
            began: self.life,
            peer: Rc::new(peer),
            outbox: Outbox::new(1 << 20),
            session: None,
            over: false,
            claims: false,
            delayed: None,
        });
        self.links.len() - 1
    }

    /// Returns true if the service at the other end still runs.
    pub(super) fn is_served(&self, link: LinkNo) -> bool {
        self.hub.is_some() && self.links[link].life == self.life
    }

    /// Takes a message.
    pub(super) fn receive(&mut self, link: LinkNo, message: ToService, now: u64) {
        if self.is_served(link) && !self.links[link].over {
            let grants_early = self.bug == Some(Bug::GrantEarly) && message == ToService::Claimed;
            for message in self.distort(link, message, now) {
                self.pass(link, message, now);
            }
            if grants_early && !self.struck {
                self.end_unclaimed(now);
            }
        }
    }

    fn pass(&mut self, link: LinkNo, message: ToService, now: u64) {
        let at = self.at(now);
        let Some(hub) = &mut self.hub else { return };
        let Link { peer, outbox, session, over, .. } = &mut self.links[link];
        let taken = match (*session, message) {
            (Some((number, _)), message) => hub.message(number, message, at),
            (None, ToService::Hello(hello)) => {
                hub.hello(peer, &hello, outbox, at).map(|begun| *session = Some(begun))
            }
            (None, message) => panic!("{message:?} came before the hello"),
        };
        if let Err(fault) = taken {
            outbox.end(fault);
            *over = true;
            if let Some((number, connection)) = *session {
                hub.leave(number, connection, at);
            }
        }
    }

    /// Changes a received message, if the bug is about messages.
    fn distort(&mut self, link: LinkNo, message: ToService, now: u64) -> Vec<ToService> {
        let Link { claims, delayed, .. } = &mut self.links[link];
        match (self.bug.filter(|_| !self.struck), message) {
            (Some(Bug::ForgetSteal), ToService::Request(request)) if !*claims => {
                if request.wait == Wait::Steal {
                    let table = fs::read(self.folder.join("requests.table")).expect("a table");
                    self.before_steal = Some((table, now));
                }
                vec![ToService::Request(request)]
            }
            (Some(Bug::RefuseClaim), ToService::Request(mut request))
                if request.token.is_some() =>
            {
                request.token = request.token.map(|token| token + 1);
                self.struck = true;
                vec![ToService::Request(request)]
            }
            (Some(Bug::LoseOrder), ToService::Request(request)) if *claims => {
                let waits = request.token.is_none() && request.wait == Wait::Queue;
                let (later, now) =
                    if waits { (Some(request), None) } else { (None, Some(request)) };
                let earlier = std::mem::replace(delayed, later);
                earlier.into_iter().chain(now).map(ToService::Request).collect()
            }
            (Some(Bug::LoseOrder), ToService::Claimed) if delayed.is_some() => {
                self.struck = true;
                let request = delayed.take().map(ToService::Request);
                *claims = false;
                [ToService::Claimed].into_iter().chain(request).collect()
            }
            (_, ToService::Claimed) => {
                *claims = false;
                vec![ToService::Claimed]
            }
            (_, message) => vec![message],
        }
    }

    /// Notes that a connection broke.
    pub(super) fn detach(&mut self, link: LinkNo, now: u64) {
        let at = self.at(now);
        if self.is_served(link)
            && let (Some(hub), Some((number, connection))) =
                (&mut self.hub, self.links[link].session)
        {
            hub.detach(number, connection, at);
        }
        self.links[link].over = true;
    }

    /// Notes that a client of this machine is gone, in this service or its successor.
    pub(super) fn bury(&mut self, client: ClientNo, now: u64) {
        let at = self.at(now);
        let (life, Some(hub)) = (self.life, &mut self.hub) else { return };
        // Its latest connection may have broken before the hello arrived.
        let known = self.links.iter().rev().filter(|link| link.client == client);
        let Some((known, (number, connection))) =
            known.filter_map(|link| Some((link.began, link.session?))).next()
        else {
            return;
        };
        if known == life {
            hub.leave(number, connection, at);
        } else {
            hub.end_unclaimed(number, at);
        }
    }

    /// Takes the messages to send. With dice, only a part of them: the service is about to be
    /// killed.
    pub(super) fn send(&mut self, mut dice: Option<&mut Dice>) -> Vec<Sent> {
        let mut sent = Vec::new();
        let life = self.life;
        let known: HashMap<u32, LinkNo> = self
            .links
            .iter()
            .enumerate()
            .filter(|(_, link)| link.began == life)
            .filter_map(|(number, link)| Some((link.session?.0, number)))
            .rev()
            .collect();
        for (number, link) in self.links.iter_mut().enumerate() {
            if link.life != life {
                continue;
            }
            let mut frames = VecDeque::new();
            link.outbox.take(&mut frames);
            link.outbox.written_all();
            if let Some(dice) = &mut dice {
                frames.truncate(dice.roll(1 + frames.len() as u64) as usize);
            }
            let texts = frames.iter().map(Frame::text);
            let mut messages: Vec<ToClient> =
                texts.map(|text| wire::read(&text).expect("the service writes messages")).collect();
            for message in &messages {
                // The first connection of a session that began in an earlier life.
                link.claims |= matches!(message, ToClient::Welcome(welcome)
                    if welcome.resumed && known.get(&welcome.session) == Some(&number));
            }
            if !link.over || link.session.is_none() {
                messages.extend(link.outbox.ending().map(ToClient::Error));
            }
            if link.outbox.ending().is_some() {
                (link.over, link.life) = (true, 0);
            }
            let client = link.client;
            sent.extend(messages.into_iter().map(|message| Sent { link: number, client, message }));
        }
        sent
    }
}
