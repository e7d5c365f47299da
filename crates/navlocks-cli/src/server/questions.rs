//! Questions and their answers.

use std::time::Instant;

use navlocks::wire::{self, Answer, Ask, Fault, FaultCode, Question, Reply, RequestKey, ToClient};
use navlocks_core::RequestId;

use super::hub::Hub;
use super::partitions::PartitionIndex;
use super::peer::Peer;
use super::session::{Client, Known};

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
            Question::Blockers(key) => {
                let blockers = match self.find(index, key) {
                    Some(id) => partition.manager.blockers(id),
                    None => navlocks_core::Blockers::default(),
                };
                Reply::Blockers {
                    hard: partition.request_keys(&blockers.hard),
                    soft: partition.request_keys(&blockers.soft),
                }
            }
            Question::Contended(key) => {
                let contended = |id| partition.manager.is_contended(id);
                Reply::Contended(self.find(index, key).is_some_and(contended))
            }
            Question::Deadlocks => Reply::Deadlocks(partition.cycles(&self.sessions)),
            Question::ForceRelease(name) => {
                let (partitions, mut around) = self.around(now);
                Reply::Released(partitions[index].force_release(&name, &mut around) as u64)
            }
        }
    }

    /// A living request of this partition, whoever's it is. Those of other partitions are nobody's business.
    fn find(&self, index: PartitionIndex, key: RequestKey) -> Option<RequestId> {
        match self.sessions.get(key.session)?.requests.get(&key.request)? {
            &Known::Live { partition, id } if partition == index => Some(id),
            _ => None,
        }
    }
}
