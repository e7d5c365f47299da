//! The place of a lock space: one of the backends, by its type.

use std::ops::Deref;
use std::sync::Arc;
use std::task::Waker;

use navlocks_core::{ClientId, Request, RequestId};

use crate::backend::extras::Extras;
use crate::backend::{Answer, Backend, Sender};
use crate::error::LossCause;
use crate::local::Space;
#[cfg(feature = "client")]
use crate::remote::Handle;

/// A backend. All verbs go through the trait; those of the fast path are also called by type,
/// because the compiler builds the guard in place only if it sees the callee.
#[derive(Clone, Debug)]
pub(crate) enum AnyBackend {
    Local(Arc<Space>),
    #[cfg(feature = "client")]
    Remote(Arc<Handle>),
}

/// A client, and the place of its lock space.
pub(crate) type Member = (AnyBackend, ClientId);

impl AnyBackend {
    #[inline]
    pub(crate) fn request(
        &self,
        sender: &Sender,
        request: &Request,
        extras: Option<&Extras>,
        waker: &Waker,
    ) -> Answer {
        match self {
            Self::Local(space) => space.request(sender, request, extras, waker),
            #[cfg(feature = "client")]
            Self::Remote(handle) => handle.request(sender, request, extras, waker),
        }
    }

    #[inline]
    pub(crate) fn release(&self, id: RequestId) -> Result<(), LossCause> {
        match self {
            Self::Local(space) => space.release(id),
            #[cfg(feature = "client")]
            Self::Remote(handle) => handle.release(id),
        }
    }

    /// Adds a client to the lock space of the client `like`.
    #[cfg_attr(
        not(feature = "client"),
        expect(unused_variables, reason = "a place in this process is one lock space")
    )]
    pub(crate) fn new_client(&self, like: ClientId) -> Member {
        match self {
            Self::Local(space) => (self.clone(), space.add_client()),
            #[cfg(feature = "client")]
            Self::Remote(handle) => (self.clone(), handle.new_client(like)),
        }
    }

    /// Adds a client to the lock space of this name.
    pub(crate) fn partition(&self, name: &str) -> Member {
        match self {
            Self::Local(space) => {
                let space = space.partition(name);
                let client = space.add_client();
                (Self::Local(space), client)
            }
            #[cfg(feature = "client")]
            Self::Remote(handle) => {
                let (handle, client) = handle.partition(name);
                (Self::Remote(handle), client)
            }
        }
    }
}

impl Deref for AnyBackend {
    type Target = dyn Backend;

    fn deref(&self) -> &(dyn Backend + 'static) {
        match self {
            Self::Local(space) => &**space,
            #[cfg(feature = "client")]
            Self::Remote(handle) => &**handle,
        }
    }
}
