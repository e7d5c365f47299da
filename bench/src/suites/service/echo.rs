//! The floor: for every lock, a message of 64 bytes to a server that sends it back; a release costs
//! nothing.

use std::io;

use super::client::{Client, Service};
use super::wire::Wire;
use servers::Address;

const MESSAGE: [u8; 64] = [b'.'; 64];

#[derive(Clone, Copy, Debug)]
pub(super) struct Echo;

pub(super) struct EchoClient(Wire);

impl Service for Echo {
    type Client = EchoClient;

    const EXCLUDES: bool = false;

    async fn connect(self, address: &Address) -> io::Result<EchoClient> {
        let mut client = EchoClient(Wire::open(address).await?);
        // A Unix socket connects before the server accepts; many at once would overflow the
        // backlog.
        client.acquire("").await?;
        Ok(client)
    }
}

impl Client for EchoClient {
    async fn acquire(&mut self, _name: &str) -> io::Result<()> {
        self.0.output.extend_from_slice(&MESSAGE);
        self.0.send().await?;
        while self.0.peek().len() < MESSAGE.len() {
            self.0.receive().await?;
        }
        self.0.take(MESSAGE.len());
        Ok(())
    }

    async fn release(&mut self) -> io::Result<()> {
        Ok(())
    }
}
