//! Welcomes of the scripted peer.

use navlocks_wire::{Limits, Welcome};

/// Returns the welcome of a session that ends with its connection.
pub(crate) fn welcome(session: u32) -> Welcome {
    Welcome {
        service: "a peer of tests".into(),
        session,
        secret: String::new(),
        epoch: 0,
        timed_out: false,
        cluster: false,
        presence: None,
        lease_ms: None,
        resumed: false,
        origin: String::new(),
        limits: Limits {
            message_bytes_max: 1 << 20,
            name_bytes_max: 1 << 12,
            names_per_request_max: 1000,
            tag_bytes_max: 1 << 10,
            requests_per_session_max: 100_000,
            clients_per_session_max: 1000,
        },
    }
}

/// Returns the welcome of a session over a Unix socket that outlives its service, of this epoch.
pub(crate) fn lasting(session: u32, epoch: u64) -> Welcome {
    Welcome { secret: format!("secret of {session}"), epoch, ..welcome(session) }
}

/// Returns the welcome of a session with a lease longer than any test.
pub(crate) fn leased(session: u32) -> Welcome {
    leased_for(session, 60_000)
}

pub(crate) fn leased_for(session: u32, milliseconds: u64) -> Welcome {
    let secret = format!("secret of {session}");
    Welcome { lease_ms: Some(milliseconds), secret, ..welcome(session) }
}

/// The welcome of a cluster's node, in this epoch.
pub(crate) fn clustered(session: u32, epoch: u64) -> Welcome {
    Welcome { cluster: true, epoch, ..leased(session) }
}
