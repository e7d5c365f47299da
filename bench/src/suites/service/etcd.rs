//! etcd: its lock API over gRPC, with a lease for each client. The server queues waiters.
//!
//! This file encodes the calls by hand: a length, and messages of one or two fields.

use std::io;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use h2::client::SendRequest;
use http::Request;
use tokio::task::JoinHandle;

use super::client::{Client, Service};
use super::wire;
use servers::Address;

const LEASE_SECONDS: u64 = 600;

#[derive(Clone, Copy, Debug)]
pub(super) struct Etcd;

pub(super) struct EtcdClient {
    requests: SendRequest<Bytes>,
    /// The task that moves the frames.
    connection: JoinHandle<()>,
    lease: u64,
    /// The key of the held lock in the lock API.
    key: Bytes,
}

impl Service for Etcd {
    type Client = EtcdClient;

    /// etcd serves new watchers ten times a second. A shorter time would only measure that pause.
    const HOLD: Duration = Duration::from_millis(120);

    async fn connect(self, address: &Address) -> io::Result<EtcdClient> {
        let stream = wire::open(address).await?;
        let (requests, connection) = h2::client::handshake(stream).await.map_err(failed)?;
        let connection = tokio::spawn(async move {
            // The call that it affects returns its error as well.
            let _ = connection.await;
        });
        let mut client = EtcdClient { requests, connection, lease: 0, key: Bytes::new() };
        let answer = client
            .call("etcdserverpb.Lease/LeaseGrant", &[Field::Number(1, LEASE_SECONDS)])
            .await?;
        client.lease = match find(&answer, 2)? {
            Found::Number(lease) => lease,
            Found::Bytes(_) => return Err(io::Error::other("etcd granted no lease")),
        };
        Ok(client)
    }
}

impl Client for EtcdClient {
    async fn acquire(&mut self, name: &str) -> io::Result<()> {
        let fields = [Field::Bytes(1, name.as_bytes()), Field::Number(2, self.lease)];
        let answer = self.call("v3lockpb.Lock/Lock", &fields).await?;
        self.key = match find(&answer, 2)? {
            Found::Bytes(range) => answer.slice(range),
            Found::Number(_) => return Err(io::Error::other("etcd named no key")),
        };
        Ok(())
    }

    async fn release(&mut self) -> io::Result<()> {
        let key = std::mem::take(&mut self.key);
        self.call("v3lockpb.Lock/Unlock", &[Field::Bytes(1, &key)]).await?;
        Ok(())
    }

    async fn close(mut self) -> io::Result<()> {
        self.call("etcdserverpb.Lease/LeaseRevoke", &[Field::Number(1, self.lease)]).await?;
        self.connection.abort();
        Ok(())
    }
}

impl EtcdClient {
    /// Makes one unary call. Returns the message of the answer.
    async fn call(&mut self, method: &str, fields: &[Field<'_>]) -> io::Result<Bytes> {
        let request = Request::post(format!("http://etcd/{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .map_err(io::Error::other)?;
        let mut requests = self.requests.clone().ready().await.map_err(failed)?;
        let (response, mut body) = requests.send_request(request, false).map_err(failed)?;
        body.send_data(encode(fields), true).map_err(failed)?;
        let response = response.await.map_err(failed)?;
        let mut status = response.headers().get("grpc-status").cloned();
        let mut body = response.into_body();
        let mut answer = BytesMut::new();
        while let Some(data) = body.data().await {
            let data = data.map_err(failed)?;
            body.flow_control().release_capacity(data.len()).map_err(failed)?;
            answer.put(data);
        }
        if let Some(trailers) = body.trailers().await.map_err(failed)? {
            status = trailers.get("grpc-status").cloned().or(status);
        }
        if status.is_none_or(|status| status != "0") || answer.len() < PREFIX_BYTES {
            return Err(io::Error::other(format!("etcd refused {method}")));
        }
        Ok(answer.split_off(PREFIX_BYTES).freeze())
    }
}

/// The prefix of every message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// A field of a request with its number.
enum Field<'a> {
    Number(u8, u64),
    Bytes(u8, &'a [u8]),
}

fn encode(fields: &[Field<'_>]) -> Bytes {
    let mut message = BytesMut::zeroed(PREFIX_BYTES);
    for field in fields {
        match *field {
            Field::Number(number, value) => {
                message.put_u8(number << 3);
                put_varint(&mut message, value);
            }
            Field::Bytes(number, bytes) => {
                message.put_u8(number << 3 | 2);
                put_varint(&mut message, bytes.len() as u64);
                message.put_slice(bytes);
            }
        }
    }
    let length = (message.len() - PREFIX_BYTES) as u32;
    message[1..PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
    message.freeze()
}

/// Seven bits a byte, the lowest first.
fn put_varint(message: &mut BytesMut, mut value: u64) {
    while value >= 0x80 {
        message.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    message.put_u8(value as u8);
}

/// A field of an answer.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Number(u64),
    Bytes(std::ops::Range<usize>),
}

/// Returns the field with this number.
fn find(message: &[u8], wanted: u64) -> io::Result<Found> {
    let broken = || io::Error::other("etcd's answer is broken");
    let mut at = 0;
    let varint = |at: &mut usize| {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = *message.get(*at).ok_or_else(broken)?;
            *at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(broken())
    };
    while at < message.len() {
        let tag = varint(&mut at)?;
        let value = varint(&mut at)?;
        let found = match tag & 7 {
            0 => Found::Number(value),
            2 => {
                let range = at..at + value as usize;
                at = range.end;
                message.get(range.clone()).ok_or_else(broken)?;
                Found::Bytes(range)
            }
            _ => return Err(broken()),
        };
        if tag >> 3 == wanted {
            return Ok(found);
        }
    }
    Err(broken())
}

fn failed(error: h2::Error) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_fields_are_found() {
        let message = encode(&[Field::Bytes(1, b"name"), Field::Number(2, 7_587_868_000_123)]);
        assert_eq!(message[..PREFIX_BYTES], [0, 0, 0, 0, (message.len() - 5) as u8]);
        let message = &message[PREFIX_BYTES..];
        assert_eq!(find(message, 1).unwrap(), Found::Bytes(2..6));
        assert_eq!(&message[2..6], b"name");
        assert_eq!(find(message, 2).unwrap(), Found::Number(7_587_868_000_123));
    }

    #[test]
    fn malformed_answer_is_an_error() {
        for message in [&b""[..], b"\x12", b"\x12\x05ab", b"\x10\xff", b"\x15\x01"] {
            assert!(find(message, 2).is_err(), "{message:?}");
        }
    }
}
