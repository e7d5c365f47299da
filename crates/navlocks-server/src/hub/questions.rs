//! Questions and their answers.

use std::time::{Duration, Instant};

use navlocks_core::{ClientId, Name, RequestId};
use navlocks_wire::{
    self as wire, Answer, Ask, Fault, FaultCode, LocksOf, Question, Reply, RequestKey, WaitsOf,
};

use crate::audit::Act;
use crate::hub::common::AskedAcross;
use crate::hub::frame::Text;
use crate::hub::partitions::{Looks, PartitionIndex, TooMany};
use crate::hub::sessions::{Client, Known, Session};
use crate::hub::{Frame, Hub, Peer};

/// For so long an answer about a partition in which nothing changes is given again.
const SHARED_FOR: Duration = Duration::from_millis(100);

/// An answer that several clients may get.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) partition: PartitionIndex,
    /// How many inputs the partition had.
    changes: u64,
    at: Instant,
    /// The reply as text, with what follows it in a message; none if it was too long.
    text: Option<Text>,
}

impl Hub {
    pub(crate) fn ask(&mut self, number: u32, ask: Ask, now: Instant) -> Result<(), Fault> {
        let Ask { id, client, question } = ask;
        let Some(session) = self.sessions.get(number) else { return Ok(()) };
        let peer = session.peer.clone();
        let asked = match session.client(client)? {
            Some(&Client { partition, id, .. }) => Ok((partition, id)),
            None => Err(session.closed(client, &self.limits)),
        };
        let frame = match (asked, question) {
            (Ok((partition, _)), Question::Locks(LocksOf::Partition)) => {
                self.query(partition, id, now)
            }
            (Ok(_), Question::Locks(LocksOf::All)) => match &self.slot {
                None => query_all([&*self], &peer, id, now),
                Some(slot) => {
                    self.common.across.ask(AskedAcross { slot: slot.number, session: number, id });
                    return Ok(());
                }
            },
            (Ok(_), Question::Locks(LocksOf::Unclaimed)) => {
                let party = self.party(&peer);
                let visible = |it: &Session| peer.sees_all() || it.owner.is_of(party);
                let reply = Reply::Unclaimed(self.describe_unclaimed(visible, now));
                let answer = wire::ToClient::Answer(Answer { id, reply });
                Ok(Frame::own(wire::write(&answer)))
            }
            (Ok(asker), question) => self.reply(asker, question, now).and_then(|reply| {
                let max = self.answer_bytes_max();
                wire::write_within(&reply, max)
                    .ok_or_else(|| too_long(max))
                    .map(|text| Frame::own(format!("{}{text}{}", Answer::head(id), Answer::TAIL)))
            }),
            (Err(fault), _) => Err(fault),
        };
        self.send_answer(number, id, frame);
        Ok(())
    }

    /// Sends an answer, or why there is none.
    pub(crate) fn send_answer(&mut self, number: u32, id: u64, frame: Result<Frame, Fault>) {
        let Some(session) = self.sessions.get(number) else { return };
        let max = self.limits.unread_bytes_per_tenant_max;
        let frame = frame.and_then(|frame| {
            if frame.len() > SMALL_BYTES && session.share.unread.get() + frame.len() > max {
                let text = format!(
                    "answers of more than {max} bytes lie unread in sessions of the tenant: read them first"
                );
                return Err(Fault::new(FaultCode::Limit, text));
            }
            Ok(frame)
        });
        let frame = frame.unwrap_or_else(|fault| {
            let answer = Answer { id, reply: Reply::Refused(fault) };
            Frame::own(wire::write(&wire::ToClient::Answer(answer)))
        });
        let _slow_readers_end_later = self.sessions.say_frame(number, frame);
    }

    /// The longest reply, which must fit into an outbox with what stands around it.
    fn answer_bytes_max(&self) -> usize {
        self.limits.answer_bytes_max.min(self.limits.outbox_bytes_max.saturating_sub(SMALL_BYTES))
    }

    /// Answers with all locks and requests of a partition. Those who ask while nothing changes get
    /// the same text.
    fn query(&mut self, index: PartitionIndex, id: u64, now: Instant) -> Result<Frame, Fault> {
        let max = self.answer_bytes_max();
        let partition = &self.partitions[index];
        let changes = partition.changes;
        let known = self.partitions.answered.as_ref().filter(|answered| {
            (answered.partition, answered.changes) == (index, changes)
                && now.saturating_duration_since(answered.at) < SHARED_FOR
        });
        let text = match known {
            Some(answered) => answered.text.clone(),
            None => {
                self.metrics.snapshots.inc();
                let looks = &mut Looks::default();
                let snapshot = partition.snapshot(&self.sessions, &self.room, looks, now, max);
                let written = snapshot.and_then(|(held, pending)| {
                    wire::write_within(&Reply::Locks { held, pending }, max)
                });
                let share = partition.share.clone();
                let text = written.map(|text| Text::new(text + Answer::TAIL, share));
                let answered = Answered { partition: index, changes, at: now, text: text.clone() };
                self.partitions.answered = Some(answered);
                text
            }
        };
        let text = text.ok_or_else(|| too_long(max))?;
        Ok(Frame::shared(Answer::head(id), &text, 0))
    }

    fn reply(
        &mut self,
        (index, client): (PartitionIndex, ClientId),
        question: Question,
        now: Instant,
    ) -> Result<Reply, Fault> {
        let partition = &self.partitions[index];
        let max = self.limits.blocker_entries_max;
        Ok(match question {
            // They are answered by frames of their own.
            Question::Locks(_) => return Err(too_long(0)),
            Question::Place if self.found.blind => return Err(self.withheld()),
            Question::Blockers(key) | Question::PlaceOf(key) if self.is_guest(index, key) => {
                return Err(self.withheld());
            }
            Question::Blockers(key) => {
                let blockers = match self.find(index, key) {
                    Some(id) => partition.manager().blockers_within(id, max),
                    None => Some(navlocks_core::Blockers::default()),
                };
                let blockers = blockers.ok_or_else(|| too_many(max))?;
                Reply::Blockers {
                    hard: partition.request_keys(&blockers.hard),
                    soft: partition.request_keys(&blockers.soft),
                }
            }
            Question::Place => {
                let place = partition.place(client, &self.sessions, now, max);
                let place = place.map_err(|TooMany| too_many(max))?;
                let is_guest = || !self.room.guests_of(index, client).is_empty();
                let in_room = || wire::Place { before: 0, holders: 0, held: Vec::new() };
                Reply::Place(place.or_else(|| is_guest().then(in_room)))
            }
            Question::PlaceOf(key) => {
                let pending = |id: &RequestId| {
                    partition.manager().state(*id) == Some(navlocks_core::State::Pending)
                };
                let request = self.find(index, key).filter(pending);
                let place =
                    request.map(|id| partition.place_of(id, &self.sessions, now, max)).transpose();
                Reply::Place(place.map_err(|TooMany| too_many(max))?)
            }
            Question::Contended(key) => {
                let contended = |id| partition.manager().is_contended(id);
                Reply::Contended(self.find(index, key).is_some_and(contended))
            }
            Question::Waits(of) => {
                let bytes_max = self.answer_bytes_max();
                if of == WaitsOf::Partition && partition.is_longer_than(bytes_max) {
                    return Err(too_long(bytes_max));
                }
                let max = self.limits.deadlock_entries_max;
                let waits = partition.waits(of, &self.sessions, &self.room, max, now);
                Reply::Waits(waits.ok_or_else(|| {
                    let text = format!(
                        "to look for deadlocks takes more than {max} entries here: ask when fewer requests wait"
                    );
                    Fault::new(FaultCode::Limit, text)
                })?)
            }
            Question::ForceRelease(name) => {
                let (partitions, mut context) = self.context(now);
                let count = partitions[index].force_release(&name, &mut context);
                let unclaimed = self.force_release_absent(index, &name, now);
                self.audit_force_release(index, client, &name, (count + unclaimed) as u64, now);
                Reply::Released((count + unclaimed) as u64)
            }
        })
    }

    /// Writes who released which locks of others. A line for each loss has come before.
    fn audit_force_release(
        &self,
        index: PartitionIndex,
        client: ClientId,
        name: &Name,
        losses: u64,
        now: Instant,
    ) {
        if !self.common.audit.admits(Act::ForceRelease, now) {
            return;
        }
        let key = self.partitions[index].client_key(client);
        let peer = self.sessions.get(key.session).map(|session| &session.peer);
        let (tenant, from) = (peer.map(|peer| &*peer.tenant), peer.map(|peer| peer.address()));
        let pid = peer.and_then(|peer| peer.pid());
        let name = name.to_string();
        tracing::warn!(audit = "force-release", client = %key, tenant, from, pid, name, losses, "a client releases locks of others");
    }

    /// Returns the reason why nothing is granted after an unclean end.
    pub(super) fn withheld(&self) -> Fault {
        let text = if self.found.blind {
            let seconds = self.store.earlier().as_secs_f64().ceil();
            format!(
                "no lock is granted in the first {seconds}s of the service: {}",
                self.store.why_earlier()
            )
        } else {
            "the request is held back: a client of the earlier service has not come back yet, and may hold the lock"
                .into()
        };
        Fault::new(FaultCode::BadState, text)
    }

    /// Returns true for a request of this partition that waits until locks are granted at all.
    fn is_guest(&self, index: PartitionIndex, key: RequestKey) -> bool {
        let known = self.sessions.get(key.session).and_then(|it| it.requests.get(key.request));
        matches!(known, Some(Known::Guest { partition }) if partition == index)
    }

    /// Returns the live request with this key, if it is one of this partition.
    pub(crate) fn find(&self, index: PartitionIndex, key: RequestKey) -> Option<RequestId> {
        match self.sessions.get(key.session)?.requests.get(key.request)? {
            Known::Live { partition, id } if partition == index => Some(id),
            _ => None,
        }
    }
}

/// Answers with all locks and requests of these hubs' partitions that a peer may see.
pub(crate) fn query_all<'h>(
    hubs: impl IntoIterator<Item = &'h Hub>,
    peer: &Peer,
    id: u64,
    now: Instant,
) -> Result<Frame, Fault> {
    let (mut visible, mut max) = (Vec::new(), usize::MAX);
    for hub in hubs {
        max = max.min(hub.answer_bytes_max());
        let partitions = hub.partitions.living().filter(|it| it.key.is_visible_to(peer));
        visible.extend(partitions.map(|partition| (hub, partition)));
    }
    visible.sort_by_key(|(_, partition)| &partition.key);
    let mut all = Vec::new();
    let (mut left, mut looks) = (max, Looks::default());
    for (hub, partition) in visible {
        let snapshot = partition.snapshot(&hub.sessions, &hub.room, &mut looks, now, left);
        let (held, pending) = snapshot.ok_or_else(|| too_long(max))?;
        left = left.saturating_sub(partition.bytes());
        all.push(wire::Partition { held, pending, ..partition.key.describe() });
    }
    let text = wire::write_within(&Reply::Partitions(all), max).ok_or_else(|| too_long(max))?;
    Ok(Frame::own(format!("{}{text}{}", Answer::head(id), Answer::TAIL)))
}

/// Answers up to this size are given whatever lies unread.
const SMALL_BYTES: usize = 1 << 10;

fn too_many(max: usize) -> Fault {
    let text = format!("more than {max} entries stand before the request, which is the limit");
    Fault::new(FaultCode::Limit, text)
}

fn too_long(max: usize) -> Fault {
    let text = format!("the answer has more than {max} bytes, which is the limit");
    Fault::new(FaultCode::Limit, text)
}
