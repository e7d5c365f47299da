//! Quotas of sessions and requests.

use std::rc::Rc;

use navlocks_wire::{ClientKey, Fault, FaultCode};

use crate::hub::Hub;
use crate::hub::Peer;
use crate::hub::partitions::NewRequest;
use crate::hub::partitions::PartitionIndex;
use crate::hub::shares::Share;

impl Hub {
    /// Returns the share in which a new session of this peer counts, if there is room for one.
    pub(crate) fn room_for_session(&mut self, peer: &Peer) -> Result<Rc<Share>, Fault> {
        let limit = |text: String| Err(Fault::new(FaultCode::Limit, text));
        let share = self.common.shares.borrow_mut().of(peer);
        let max = self.limits.sessions_max;
        if self.common.shares.borrow().together(peer, |share| share.sessions.get()) >= max {
            return limit(format!("the service has {max} sessions, and takes no more"));
        }
        let max = self.limits.sessions_per_tenant_max;
        if share.sessions.get() >= max {
            return limit(format!("the tenant has {max} sessions, and takes no more: end some"));
        }
        let max = self.limits.bytes_per_tenant_max;
        if share.bytes.get() >= max {
            return limit(format!("the tenant takes {max} bytes, and no more: release locks"));
        }
        Ok(share)
    }

    /// Subscribes a client to the events of its partition.
    pub(crate) fn subscribe(
        &mut self,
        partition: PartitionIndex,
        client: ClientKey,
    ) -> Result<(), Fault> {
        let max = self.limits.subscribers_per_partition_max;
        let partition = &mut self.partitions[partition];
        if partition.subscribers() >= max && !partition.has_subscriber(client) {
            let text = format!("the partition has {max} subscribers, and takes no more");
            return Err(Fault::new(FaultCode::Limit, text));
        }
        partition.subscribe(client);
        Ok(())
    }

    /// Whether a request that takes so many bytes is within all limits; if not, which it is not.
    #[inline]
    pub(crate) fn within_limits(
        &self,
        session: u32,
        partition: PartitionIndex,
        new_request: &NewRequest,
        memory: usize,
    ) -> Result<(), String> {
        let Self { limits, partitions, sessions, .. } = self;
        let partition = &partitions[partition];
        let names = new_request.request.scope.names();
        if names.len() > limits.names_per_request_max {
            let max = limits.names_per_request_max;
            return Err(format!("a request has at most {max} names"));
        }
        if names.iter().any(|name| name.len_bytes() > limits.name_bytes_max) {
            return Err(format!("a name has at most {} bytes", limits.name_bytes_max));
        }
        if new_request.tag.as_ref().is_some_and(|tag| tag.len_bytes() > limits.tag_bytes_max) {
            return Err(format!("a tag has at most {} bytes", limits.tag_bytes_max));
        }
        if let Some(session) = sessions.get(session) {
            if session.requests.len() >= limits.requests_per_session_max {
                let max = limits.requests_per_session_max;
                return Err(format!(
                    "a session has at most {max} requests, held and pending together"
                ));
            }
            if session.share.requests.get() >= limits.requests_per_tenant_max {
                let max = limits.requests_per_tenant_max;
                return Err(format!("the tenant has {max} requests, and takes no more"));
            }
            if let Some(text) = session.over_bytes(limits, memory) {
                return Err(text);
            }
        }
        if partition.requests() >= limits.requests_per_partition_max {
            let max = limits.requests_per_partition_max;
            return Err(format!("the partition has {max} requests, and takes no more"));
        }
        if partition.bytes() + new_request.bytes() > limits.partition_bytes_max {
            let max = limits.partition_bytes_max;
            return Err(format!(
                "names and tags of the partition's requests take {max} bytes, and no more"
            ));
        }
        Ok(())
    }
}
