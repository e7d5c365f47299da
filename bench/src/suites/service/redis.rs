//! Redis: `SET name token NX PX`, and a script that deletes the name if the token is still there.
//!
//! This file speaks the protocol by hand: a client crate would put a task and a channel between the
//! caller and the socket, and Redis is to look its best.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::client::{Client, Service};
use super::wire::Wire;
use servers::Address;

const LEASE_MILLISECONDS: &[u8] = b"60000";

const COMPARE_AND_DELETE: &[u8] = b"if redis.call('GET', KEYS[1]) == ARGV[1] then \
    return redis.call('DEL', KEYS[1]) else return 0 end";

/// A semaphore: a sorted set of tokens, by the time of their requests. Old ones are forgotten.
const COUNT_AND_ADD: &[u8] = b"redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[2] - 60000) \
    if redis.call('ZCARD', KEYS[1]) >= 4 then return 0 end \
    return redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])";

/// The pause of a client that polls, as libraries use it.
const POLL: Duration = Duration::from_millis(50);

/// Its multiples spread evenly between the whole numbers.
const GOLDEN_RATIO: f64 = 1.618_033_988_749_895;

/// The ways of a client to wait and to release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Redis {
    /// Tries again at once when the name is locked.
    Spin,
    /// Tries again after a pause.
    Poll,
    /// As `Spin`, but a release is not awaited: it is sent with the next request.
    Piped,
    /// A sorted set of at most four holders.
    Semaphore,
}

pub(super) struct RedisClient {
    how: Redis,
    wire: Wire,
    /// The command that calls the script.
    script: Vec<u8>,
    name: Vec<u8>,
    /// The number of the client, and of its locks so far.
    client: u64,
    locks: u64,
    /// The token of its lock; empty when it has none.
    token: Vec<u8>,
    /// Answers to releases that were not read yet.
    unread: usize,
}

impl Redis {
    fn script(self) -> &'static [u8] {
        if self == Self::Semaphore { COUNT_AND_ADD } else { COMPARE_AND_DELETE }
    }
}

impl Service for Redis {
    type Client = RedisClient;

    async fn connect(self, address: &Address) -> io::Result<RedisClient> {
        let mut wire = Wire::open(address).await?;
        command(&mut wire.output, &[b"CLIENT", b"ID"]);
        let id = answer(&mut wire).await?;
        let client = std::str::from_utf8(&id[1..]).ok().and_then(|id| id.parse().ok());
        let client = client.ok_or_else(|| unexpected(&id))?;
        command(&mut wire.output, &[b"SCRIPT", b"LOAD", self.script()]);
        // A bulk string: its length, then the digest. A server that still loads its log refuses, in
        // one line.
        let length = answer(&mut wire).await?;
        if length.first() != Some(&b'$') {
            return Err(unexpected(&length));
        }
        let script = line(&mut wire).await?;
        let (name, token) = (Vec::new(), Vec::new());
        Ok(RedisClient { how: self, wire, script, name, client, locks: 0, token, unread: 0 })
    }
}

impl Client for RedisClient {
    async fn acquire(&mut self, name: &str) -> io::Result<()> {
        self.locks += 1;
        self.token = format!("{}-{}", self.client, self.locks).into_bytes();
        self.name = name.as_bytes().to_vec();
        // The first pause is a fraction of one, another each time: a release comes at any moment of
        // it.
        let mut part = (self.locks as f64 * GOLDEN_RATIO).fract();
        loop {
            if self.how == Redis::Semaphore {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let now = now.map_err(io::Error::other)?.as_millis().to_string();
                let words: [&[u8]; 6] =
                    [b"EVALSHA", &self.script, b"1", &self.name, &self.token, now.as_bytes()];
                command(&mut self.wire.output, &words);
            } else {
                let words: [&[u8]; 6] =
                    [b"SET", &self.name, &self.token, b"NX", b"PX", LEASE_MILLISECONDS];
                command(&mut self.wire.output, &words);
            }
            self.wire.send().await?;
            for _ in 0..std::mem::take(&mut self.unread) {
                released(&line(&mut self.wire).await?)?;
            }
            match &line(&mut self.wire).await?[..] {
                b"+OK" | b":1" => return Ok(()),
                b":0" => {}
                // Nil: another client has it.
                b"$-1" if self.how == Redis::Poll => {
                    tokio::time::sleep(POLL.mul_f64(part)).await;
                    part = 1.0;
                }
                b"$-1" => {}
                other => return Err(unexpected(other)),
            }
        }
    }

    async fn release(&mut self) -> io::Result<()> {
        if self.how == Redis::Semaphore {
            command(&mut self.wire.output, &[b"ZREM", &self.name, &self.token]);
        } else {
            let words: [&[u8]; 5] = [b"EVALSHA", &self.script, b"1", &self.name, &self.token];
            command(&mut self.wire.output, &words);
        }
        self.token.clear();
        if self.how == Redis::Piped {
            self.unread += 1;
            return Ok(());
        }
        released(&answer(&mut self.wire).await?)
    }

    async fn close(mut self) -> io::Result<()> {
        if !self.token.is_empty() {
            self.release().await?;
        }
        self.wire.send().await?;
        for _ in 0..self.unread {
            released(&line(&mut self.wire).await?)?;
        }
        Ok(())
    }
}

fn command(output: &mut Vec<u8>, words: &[&[u8]]) {
    let number = |output: &mut Vec<u8>, kind: u8, number: usize| {
        output.push(kind);
        output.extend_from_slice(number.to_string().as_bytes());
        output.extend_from_slice(b"\r\n");
    };
    number(output, b'*', words.len());
    for word in words {
        number(output, b'$', word.len());
        output.extend_from_slice(word);
        output.extend_from_slice(b"\r\n");
    }
}

/// Sends the output and returns the first line of the answer.
async fn answer(wire: &mut Wire) -> io::Result<Vec<u8>> {
    wire.send().await?;
    line(wire).await
}

/// Returns the next line, without its end.
async fn line(wire: &mut Wire) -> io::Result<Vec<u8>> {
    loop {
        if let Some(end) = wire.peek().windows(2).position(|bytes| bytes == b"\r\n") {
            let line = wire.peek()[..end].to_vec();
            wire.take(end + 2);
            return Ok(line);
        }
        wire.receive().await?;
    }
}

fn released(answer: &[u8]) -> io::Result<()> {
    if answer == b":1" { Ok(()) } else { Err(unexpected(answer)) }
}

fn unexpected(answer: &[u8]) -> io::Error {
    io::Error::other(format!("Redis said {}", String::from_utf8_lossy(answer)))
}
