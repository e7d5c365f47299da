//! What a request may take of the service.

use crate::hub::Hub;
use crate::hub::partitions::Asking;
use crate::hub::partitions::PartitionIndex;

impl Hub {
    /// Whether a request is within all limits; if not, which it is not.
    #[inline]
    pub(crate) fn within_limits(
        &self,
        partition: PartitionIndex,
        known: usize,
        asking: &Asking,
    ) -> Result<(), String> {
        let Self { limits, partitions, .. } = self;
        let partition = &partitions[partition];
        let names = asking.request.scope.names();
        if names.len() > limits.names_per_request_max {
            let max = limits.names_per_request_max;
            return Err(format!("a request has at most {max} names"));
        }
        if names.iter().any(|name| name.len_bytes() > limits.name_bytes_max) {
            return Err(format!("a name has at most {} bytes", limits.name_bytes_max));
        }
        if asking.tag.as_ref().is_some_and(|tag| tag.len() > limits.tag_bytes_max) {
            return Err(format!("a tag has at most {} bytes", limits.tag_bytes_max));
        }
        if known >= limits.requests_per_session_max {
            let max = limits.requests_per_session_max;
            return Err(format!("a session has at most {max} requests, held and pending together"));
        }
        if partition.requests() >= limits.requests_per_partition_max {
            let max = limits.requests_per_partition_max;
            return Err(format!("the partition has {max} requests, and takes no more"));
        }
        if partition.bytes() + asking.bytes() > limits.partition_bytes_max {
            let max = limits.partition_bytes_max;
            return Err(format!(
                "names and tags of the partition's requests take {max} bytes, and no more"
            ));
        }
        Ok(())
    }
}
