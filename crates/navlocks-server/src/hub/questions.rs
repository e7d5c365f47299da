//! Questions and their answers.

use std::time::Instant;

use navlocks_core::RequestId;
use navlocks_wire::{
    self as wire, Answer, Ask, Fault, FaultCode, Question, Reply, RequestKey, ToClient,
};

use crate::hub::partitions::PartitionIndex;
use crate::hub::sessions::{Client, Known};
use crate::hub::{Hub, Peer};

impl Hub {
    pub(crate) fn ask(&mut self, number: u32, ask: Ask, now: Instant) -> Result<(), Fault> {
        let Ask { id, client, question } = ask;
        let Some(session) = self.sessions.get(number) else { return Ok(()) };
        let reply = match session.client(client)? {
            Some(&Client { partition, .. }) => {
                let peer = session.peer.clone();
                self.reply(partition, &peer, question, now)
            }
            None => {
                let text = format!("client {client} is closed");
                Reply::Refused(Fault::new(FaultCode::BadState, text))
            }
        };
        let mut frame = wire::write(&ToClient::Answer(Answer { id, reply }));
        let max = self.limits.outbox_bytes_max;
        if frame.len() > max {
            let text = format!("the answer has {} bytes, and {max} is the limit", frame.len());
            let reply = Reply::Refused(Fault::new(FaultCode::Limit, text));
            frame = wire::write(&ToClient::Answer(Answer { id, reply }));
        }
        self.sessions.say_frame(number, frame);
        Ok(())
    }

    fn reply(
        &mut self,
        index: PartitionIndex,
        peer: &Peer,
        question: Question,
        now: Instant,
    ) -> Reply {
        let partition = &self.partitions[index];
        match question {
            Question::Query => {
                let (held, pending) = partition.snapshot(&self.sessions, now);
                Reply::Snapshot { held, pending }
            }
            Question::QueryAll => {
                let all = self.partitions.visible_to(peer).into_iter();
                let all = all.map(|(described, partition)| {
                    let (held, pending) = partition.snapshot(&self.sessions, now);
                    wire::Partition { held, pending, ..described }
                });
                Reply::Partitions(all.collect())
            }
            Question::Blockers(key) if self.is_early(index, key) => {
                let earlier = self.store.earlier();
                let text = format!(
                    "no lock is granted in the first {}s of the service: the one before did not end in good order, and its clients may still use their locks",
                    earlier.as_secs_f64().ceil()
                );
                Reply::Refused(Fault::new(FaultCode::BadState, text))
            }
            Question::Blockers(key) => {
                let blockers = match self.find(index, key) {
                    Some(id) => partition.manager().blockers(id),
                    None => navlocks_core::Blockers::default(),
                };
                Reply::Blockers {
                    hard: partition.request_keys(&blockers.hard),
                    soft: partition.request_keys(&blockers.soft),
                }
            }
            Question::Contended(key) => {
                let contended = |id| partition.manager().is_contended(id);
                Reply::Contended(self.find(index, key).is_some_and(contended))
            }
            Question::Deadlocks => {
                let deadlocks = partition.manager().deadlocks();
                Reply::Deadlocks(deadlocks.iter().map(|one| partition.cycle(one)).collect())
            }
            Question::ForceRelease(name) => {
                let (partitions, mut around) = self.around(now);
                Reply::Released(partitions[index].force_release(&name, &mut around) as u64)
            }
        }
    }

    /// Returns true for a request of this partition that waits until locks are granted at all.
    fn is_early(&self, index: PartitionIndex, key: RequestKey) -> bool {
        let known = self.sessions.get(key.session).and_then(|it| it.requests.get(&key.request));
        matches!(known, Some(&Known::Early { partition, .. }) if partition == index)
    }

    /// A living request of this partition, whoever's it is. Those of other partitions are nobody's business.
    fn find(&self, index: PartitionIndex, key: RequestKey) -> Option<RequestId> {
        match self.sessions.get(key.session)?.requests.get(&key.request)? {
            &Known::Live { partition, id } if partition == index => Some(id),
            _ => None,
        }
    }
}
