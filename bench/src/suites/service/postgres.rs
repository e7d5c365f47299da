//! PostgreSQL: session-level advisory locks, by prepared statements. The server queues waiters.
//!
//! This file speaks the protocol by hand, for the same reason as for Redis.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;

use super::client::{Client, Service};
use super::wire::Wire;
use servers::Address;

/// The account and the database.
const STARTUP: &[u8] = b"user\0bench\0database\0postgres\0\0";
const PROTOCOL: u32 = 0x0003_0000;

const LOCK: &str = "lock";
const UNLOCK: &str = "unlock";

#[derive(Clone, Copy, Debug)]
pub(super) struct Postgres;

pub(super) struct PostgresClient {
    wire: Wire,
    held: i64,
}

impl Service for Postgres {
    type Client = PostgresClient;

    async fn connect(self, address: &Address) -> io::Result<PostgresClient> {
        let mut client = PostgresClient { wire: Wire::open(address).await?, held: 0 };
        let output = &mut client.wire.output;
        output.extend_from_slice(&(STARTUP.len() as u32 + 8).to_be_bytes());
        output.extend_from_slice(&PROTOCOL.to_be_bytes());
        output.extend_from_slice(STARTUP);
        client.until_ready().await?;
        client.prepare(LOCK, "SELECT pg_advisory_lock($1)");
        client.prepare(UNLOCK, "SELECT pg_advisory_unlock($1)");
        message(&mut client.wire.output, b'S', &[]);
        client.until_ready().await?;
        Ok(client)
    }
}

impl Client for PostgresClient {
    async fn acquire(&mut self, name: &str) -> io::Result<()> {
        // Advisory locks have numbers only.
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        self.held = hasher.finish().cast_signed();
        self.call(LOCK).await
    }

    async fn release(&mut self) -> io::Result<()> {
        self.call(UNLOCK).await
    }

    async fn close(mut self) -> io::Result<()> {
        message(&mut self.wire.output, b'X', &[]);
        self.wire.send().await
    }
}

impl PostgresClient {
    fn prepare(&mut self, name: &str, query: &str) {
        // No types: the server finds that the parameter is a bigint.
        let types = 0u16.to_be_bytes();
        let parts: [&[u8]; 5] = [name.as_bytes(), b"\0", query.as_bytes(), b"\0", &types];
        message(&mut self.wire.output, b'P', &parts);
    }

    /// Runs a statement with the key of the lock: one write, one answer.
    async fn call(&mut self, statement: &str) -> io::Result<()> {
        let key = self.held.to_be_bytes();
        // The nameless portal; one parameter, binary, of eight bytes; the result in one format,
        // text.
        let (one, binary, text) = (1u16.to_be_bytes(), 1u16.to_be_bytes(), 0u16.to_be_bytes());
        let eight = 8u32.to_be_bytes();
        let bind: [&[u8]; 10] =
            [b"\0", statement.as_bytes(), b"\0", &one, &binary, &one, &eight, &key, &one, &text];
        message(&mut self.wire.output, b'B', &bind);
        message(&mut self.wire.output, b'E', &[b"\0", &0u32.to_be_bytes()]);
        message(&mut self.wire.output, b'S', &[]);
        self.until_ready().await
    }

    /// Sends the output and reads until the server is ready for the next message.
    async fn until_ready(&mut self) -> io::Result<()> {
        self.wire.send().await?;
        loop {
            let input = self.wire.peek();
            if let [kind, a, b, c, d, body @ ..] = input {
                let (kind, length) = (*kind, u32::from_be_bytes([*a, *b, *c, *d]) as usize);
                if body.len() + 4 >= length {
                    let body = &body[..length - 4];
                    // An unlock of a free lock is no error there, only an f.
                    if kind == b'E' || kind == b'D' && body.last() == Some(&b'f') {
                        let text = String::from_utf8_lossy(body).replace('\0', " ");
                        return Err(io::Error::other(format!("PostgreSQL said {text}")));
                    }
                    self.wire.take(1 + length);
                    if kind == b'Z' {
                        return Ok(());
                    }
                    continue;
                }
            }
            self.wire.receive().await?;
        }
    }
}

/// Appends a message: its kind, its length with the length itself, its parts.
fn message(output: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    output.push(kind);
    let length: usize = parts.iter().map(|part| part.len()).sum();
    output.extend_from_slice(&(length as u32 + 4).to_be_bytes());
    for part in parts {
        output.extend_from_slice(part);
    }
}
