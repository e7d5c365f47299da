//! The handshake over a Unix socket, with the first messages behind it.
//!
//! It is always the same text: its key protects from caches of HTTP, and a Unix socket has none. A
//! short command spends a twentieth of its time on a new key and its proof.

use std::io::{self, Cursor};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use super::dial::{Link, Socket, other_protocol, refused};
use super::errors::ConnectError;
use navlocks_wire::{OFFERED_SUBPROTOCOLS, SUBPROTOCOLS};

/// The key, and the answer that proves that a server of WebSocket has read it.
const KEY: &str = "bmF2bG9ja3Mgb24gVW5peA==";
const ACCEPTED: &str = "JalQUDtmYHc7uYkxZstChnBz8KI=";

/// The beginning of every answer.
const VERSION: &str = "HTTP/1.1 ";

/// The longest answer of a service, without its messages.
const ANSWER_BYTES_MAX: usize = 8 << 10;

/// Opens a WebSocket, and sends these messages without waiting for the answer.
pub(super) async fn open(
    mut socket: Box<dyn Socket>,
    messages: Vec<String>,
    config: WebSocketConfig,
) -> Result<Link, ConnectError> {
    let unreachable = ConnectError::Unreachable;
    let bytes = request(messages).map_err(|error| ConnectError::Handshake(error.to_string()))?;
    socket.write_all(&bytes).await.map_err(unreachable)?;
    let mut read = Vec::with_capacity(1 << 10);
    let end = loop {
        if let Some(end) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end;
        }
        // Checked at once: another server may wait for a greeting of its own kind.
        if !read.iter().zip(VERSION.as_bytes()).all(|(read, expected)| read == expected) {
            return Err(no_http());
        }
        if read.len() > ANSWER_BYTES_MAX {
            return Err(ConnectError::Handshake("its answer is too long".into()));
        }
        if socket.read_buf(&mut read).await.map_err(unreachable)? == 0 {
            // A service that is killed in the middle of a handshake may be back the next moment.
            return Err(unreachable(io::ErrorKind::UnexpectedEof.into()));
        }
    };
    let rest = read.split_off(end + 4);
    check(&String::from_utf8_lossy(&read), &rest)?;
    Ok(WebSocketStream::from_partially_read(socket, rest, Role::Client, Some(config)).await)
}

/// Returns the request for a WebSocket, with the messages in frames behind it.
fn request(messages: Vec<String>) -> Result<Vec<u8>, tungstenite::Error> {
    let request = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\
         Sec-WebSocket-Protocol: {OFFERED_SUBPROTOCOLS}\r\n\r\n"
    );
    let mut bytes = Cursor::new(request.into_bytes());
    bytes.set_position(bytes.get_ref().len() as u64);
    // Nothing is read here, and the default buffer is large.
    let config = WebSocketConfig::default().read_buffer_size(0);
    let mut frames = WebSocket::from_raw_socket(bytes, Role::Client, Some(config));
    for message in messages {
        frames.write(Message::text(message))?;
    }
    frames.flush()?;
    Ok(frames.into_inner().into_inner())
}

/// Checks the head of an answer. The body is the reason of a refusal.
fn check(head: &str, body: &[u8]) -> Result<(), ConnectError> {
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let code = first.strip_prefix(VERSION).and_then(|rest| rest.get(..3)?.parse().ok());
    let Some(code) = code.and_then(|code: u16| StatusCode::from_u16(code).ok()) else {
        return Err(no_http());
    };
    if code != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refused(code, body));
    }
    let headers = lines.filter_map(|line| line.split_once(':'));
    let has = |name: &str, value: &str| {
        headers.clone().any(|(n, v)| n.eq_ignore_ascii_case(name) && v.trim() == value)
    };
    if !has("Sec-WebSocket-Accept", ACCEPTED) {
        return Err(ConnectError::Handshake("it does not speak WebSocket".into()));
    }
    if !SUBPROTOCOLS.iter().any(|known| has("Sec-WebSocket-Protocol", known)) {
        return Err(other_protocol());
    }
    Ok(())
}

fn no_http() -> ConnectError {
    ConnectError::Handshake("it does not speak HTTP".into())
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio::io::{DuplexStream, duplex};
    use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

    use super::*;

    const WELCOME: &str = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\
        sec-websocket-accept: JalQUDtmYHc7uYkxZstChnBz8KI=\r\n\
        sec-websocket-protocol: navlocks.2\r\n\r\n";

    /// A socket that takes this many bytes at a time, and its other end.
    fn pair(width: usize) -> (Box<dyn Socket>, DuplexStream) {
        let (near, far) = duplex(width);
        (Box::new(near), far)
    }

    async fn answered(answer: &str) -> Result<Link, ConnectError> {
        let (near, mut far) = pair(64 << 10);
        far.write_all(answer.as_bytes()).await.unwrap();
        far.shutdown().await.unwrap();
        let opened = open(near, vec!["hi".into()], WebSocketConfig::default()).await;
        drop(far);
        opened
    }

    #[test]
    fn constant_answer_proves_the_constant_key() {
        assert_eq!(derive_accept_key(KEY.as_bytes()), ACCEPTED);
    }

    #[tokio::test]
    async fn messages_follow_the_handshake_however_little_a_socket_takes() {
        for width in [1, 3, 100, 1000] {
            let (near, mut far) = pair(width);
            let opened = tokio::spawn(open(near, vec!["hi".into()], WebSocketConfig::default()));
            let mut bytes = Vec::new();
            while !bytes.ends_with(b"\r\n\r\n") {
                bytes.push(far.read_u8().await.unwrap());
            }
            let config = Some(WebSocketConfig::default());
            let mut served = WebSocketStream::from_raw_socket(far, Role::Server, config).await;
            let first = served.next().await.unwrap().unwrap();
            assert_eq!(first, Message::text("hi"), "{width}");
            served.get_mut().write_all(WELCOME.as_bytes()).await.unwrap();
            let received = async { opened.await.unwrap().unwrap().next().await.unwrap() };
            let (sent, received) = tokio::join!(served.send(Message::text("ho")), received);
            sent.unwrap();
            assert_eq!(received.unwrap(), Message::text("ho"), "{width}");
        }
    }

    #[tokio::test]
    async fn other_answers_are_errors_with_their_reason() {
        assert!(answered(WELCOME).await.is_ok());
        let error = async |answer: &str| answered(answer).await.err().unwrap().to_string();
        let full = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\nit is full\n";
        assert!(error(full).await.contains("it is full"));
        assert!(error(&WELCOME.replace("Jal", "Lal")).await.contains("does not speak WebSocket"));
        assert!(error(&WELCOME.replace("s.2", "s.9")).await.contains("speak navlocks.2"));
        assert!(error("220 mail\r\n").await.contains("does not speak HTTP"));
        assert!(error("HTTP/1.1 yes\r\n\r\n").await.contains("does not speak HTTP"));
        let long = format!("HTTP/1.1 101 {}", "long".repeat(5000));
        assert!(error(&long).await.contains("too long"));
        let cut = answered("HTTP/1.1 101 Sw").await.err().unwrap();
        let is_eof = |error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof;
        assert!(matches!(&cut, ConnectError::Unreachable(error) if is_eof(error)), "{cut}");
    }
}
