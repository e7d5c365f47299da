//! A service from its start to its end.

use std::io;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::net::{TcpListener, UnixListener};
use tokio::task::LocalSet;

use super::config::Config;
use super::hub::Hub;
use super::listener::{Address, Listener};
use super::shared::Shared;
use super::tokens::Tokens;

/// A lock service that has its sockets. It serves while [`run`](Self::run) is polled.
#[derive(Debug)]
pub struct Service {
    shared: Rc<Shared>,
    listeners: Vec<Listener>,
    addresses: Vec<Address>,
}

impl Service {
    /// Takes the sockets that the configuration names. Must be called in a tokio runtime.
    ///
    /// # Errors
    ///
    /// A socket cannot be had.
    pub async fn bind(config: Config) -> io::Result<Self> {
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        if let Some(path) = &config.unix {
            listeners.push(Listener::Unix(UnixListener::bind(path)?));
            addresses.push(Address::Unix(path.clone()));
        }
        for address in &config.tcp {
            let listener = TcpListener::bind(address).await?;
            addresses.push(Address::Tcp(listener.local_addr()?));
            listeners.push(Listener::Tcp(listener));
        }
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let tokens = Tokens::above(clock.as_micros() as u64);
        let hub = Hub::new(config.limits.clone(), config.deadlocks, tokens);
        Ok(Self { shared: Shared::new(config, hub), listeners, addresses })
    }

    /// Where the service can be reached.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Serves until `until` is ready, then ends in good order. Dropped before, it ends as if it were killed.
    ///
    /// # Errors
    ///
    /// What kept it from going on.
    pub async fn run(self, until: impl Future<Output = ()>) -> io::Result<()> {
        let Self { shared, listeners, .. } = self;
        let tasks = LocalSet::new();
        tasks
            .run_until(async {
                for listener in listeners {
                    tokio::task::spawn_local(listener.serve(shared.clone()));
                }
                until.await;
            })
            .await;
        Ok(())
    }
}
