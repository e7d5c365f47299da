//! A stranger: a peer that has proven nothing, and sends each message with the numbers of others.
//! Nothing of theirs may change.

use std::rc::Rc;

use navlocks_core::{Mode, Name};
use navlocks_server::hub::{Contents, Outbox, Peer};
use navlocks_tests::chaos::Dice;
use navlocks_wire::{
    Ask, Downgrade, Hello, LocksOf, Open, Question, RequestKey, Resume, ToService, Watch,
};

use crate::bug::Bug;
use crate::services::{LinkNo, Services};

/// A secret of the right form.
const SECRET: &str = "AAAAAAAAAAAAAAAAAAAAAA";

/// The numbers of requests and clients that a stranger tries.
const NUMBERS: u64 = 6;

impl Services {
    /// Lets a stranger come to the service of a connection. Returns what it has changed.
    pub(crate) fn visit(&mut self, link: LinkNo, dice: &mut Dice, now: u64) -> Option<String> {
        if !self.is_served(link) || self.nodes[self.links[link].node].is_asleep {
            return None;
        }
        let (session, _) = self.links[link].session?;
        let before = self.owned_contents(link)?;
        let epoch = *dice.pick(&[0, 1 << 40, 1 << 52, u64::MAX >> 11]).unwrap_or(&0);
        self.resume_of_another(link, session, epoch, now);
        self.session_of_its_own(link, session, dice, now);
        let after = self.owned_contents(link);
        (after.as_ref() != Some(&before))
            .then(|| format!("a stranger has changed {before:?} to {after:?}"))
    }

    /// Returns how many slots the node of a connection serves, and what its hub has.
    fn owned_contents(&mut self, link: LinkNo) -> Option<(usize, Contents)> {
        let hubs = self.nodes[self.links[link].node].hubs.len();
        self.hub(link).map(|hub| (hubs, hub.contents()))
    }

    /// Claims to be another client, with a wrong secret.
    fn resume_of_another(&mut self, link: LinkNo, session: u32, epoch: u64, now: u64) {
        let (at, outbox) = (self.at(now), Outbox::new(1 << 20));
        let peer = self.links[link].peer.clone();
        let resume = Some(Resume { session, secret: SECRET.into(), epoch });
        let hello = Hello { resume, ..Hello::default() };
        let Some(hub) = self.hub(link) else { return };
        let greeted = hub.hello(&peer, &hello, &outbox, at);
        assert!(greeted.is_err(), "a stranger has resumed session {session}");
        if self.awaits_claim(link) && self.seeded.strikes_once(Bug::StrangerEndsClaim) {
            self.hub(link).into_iter().for_each(|hub| hub.end_unclaimed(session, at));
        }
        let node = self.links[link].node;
        if epoch > 0 && self.seeded.strikes(Bug::StrangerMovesSlots) {
            self.nodes[node].hubs.clear();
        }
    }

    /// Sends each message with the numbers of others, over a session of another tenant.
    fn session_of_its_own(&mut self, link: LinkNo, other: u32, dice: &mut Dice, now: u64) {
        let (at, outbox) = (self.at(now), Outbox::new(1 << 20));
        let peer = Rc::new(Peer::remote("stranger", ""));
        let hello = Hello::default();
        let Some(hub) = self.hub(link) else { return };
        let Ok((session, connection)) = hub.hello(&peer, &hello, &outbox, at) else { return };
        let id = dice.roll(NUMBERS);
        let key = RequestKey::new(other, id);
        let question = |question| ToService::Ask(Ask { id, client: 0, question });
        let messages = [
            ToService::End(id),
            ToService::Watch(Watch::Contention(id)),
            ToService::Watch(Watch::NoEvents(0)),
            ToService::Downgrade(Downgrade { id, mode: Mode::Shared }),
            question(Question::Blockers(key)),
            question(Question::Contended(key)),
            question(Question::Locks(LocksOf::Partition)),
            question(Question::ForceRelease(Name::from("a"))),
            ToService::Present,
            ToService::Open(Open { client: id, partition: "p0".to_owned() }),
            ToService::Close(id),
            ToService::Watch(Watch::Events(id)),
            ToService::Claimed,
        ];
        for message in messages {
            if hub.message(session, message, at).is_err() {
                break;
            }
        }
        hub.leave(session, connection, at);
        while hub.go_on(at) {}
    }
}
