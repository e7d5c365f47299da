//! navlocks, as its users have it: `Locks::connect`, an awaited request, a dropped guard.
//!
//! A release has no answer: it is sent with the next request of the same client.

use std::io;

use ::navlocks::{Lock, Locks};

use super::client::{Client, Service};
use servers::Address;

/// Requests exclusive locks, or locks with a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Navlocks {
    Exclusive,
    Limited(u32),
}

pub(crate) struct NavlocksClient {
    how: Navlocks,
    locks: Locks,
    held: Option<Lock>,
}

impl Service for Navlocks {
    type Client = NavlocksClient;

    async fn connect(self, address: &Address) -> io::Result<NavlocksClient> {
        let url = match address {
            Address::Unix(path) => format!("unix:{}", path.display()),
            Address::Tcp(address) => format!("ws://{address}"),
        };
        let locks = Locks::connect(url).await.map_err(io::Error::other)?;
        Ok(NavlocksClient { how: self, locks, held: None })
    }
}

impl Client for NavlocksClient {
    async fn acquire(&mut self, name: &str) -> io::Result<()> {
        let request = self.locks.request(name);
        let request = match self.how {
            Navlocks::Exclusive => request,
            Navlocks::Limited(limit) => request.limit(limit),
        };
        self.held = Some(request.await.map_err(io::Error::other)?);
        Ok(())
    }

    async fn release(&mut self) -> io::Result<()> {
        drop(self.held.take());
        Ok(())
    }

    async fn keeps(&mut self) -> io::Result<bool> {
        // Claims are sent before later requests, so the answer of one shows that the claim was
        // taken.
        let later = self.locks.request("later").shared().if_available().await;
        later.map_err(io::Error::other)?;
        Ok(self.held.as_ref().is_some_and(|held| held.loss().is_none()))
    }

    async fn close(self) -> io::Result<()> {
        drop(self.held);
        self.locks.disconnect().await;
        Ok(())
    }
}
