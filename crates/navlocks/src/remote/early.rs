//! The first messages of a connection, sent before the service has answered.

use std::io::{self, Cursor};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

/// A socket that sends further bytes right behind its first write, which is a WebSocket handshake.
pub(super) struct Early<S> {
    socket: S,
    /// Sent with the first write.
    frames: Vec<u8>,
    /// The part of it that did not fit.
    rest: Vec<u8>,
}

impl<S> Early<S> {
    /// Sends these messages behind the handshake.
    pub(super) fn new(socket: S, messages: Vec<String>) -> Result<Self, tungstenite::Error> {
        // Nothing is read here, and the default buffer is large.
        let config = WebSocketConfig::default().read_buffer_size(0);
        let bytes = Cursor::new(Vec::new());
        let mut frames = WebSocket::from_raw_socket(bytes, Role::Client, Some(config));
        for message in messages {
            frames.write(Message::text(message))?;
        }
        frames.flush()?;
        Ok(Self { socket, frames: frames.into_inner().into_inner(), rest: Vec::new() })
    }
}

impl<S: AsyncWrite + Unpin> Early<S> {
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.rest.is_empty() {
            let written = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.rest))?;
            self.rest.drain(..written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Early<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_rest(cx))?;
        if self.frames.is_empty() {
            return Pin::new(&mut self.socket).poll_write(cx, bytes);
        }
        let all = [bytes, &self.frames].concat();
        let written = ready!(Pin::new(&mut self.socket).poll_write(cx, &all))?;
        if written >= bytes.len() {
            self.frames = Vec::new();
            self.rest = all[written..].to_vec();
        }
        Poll::Ready(Ok(written.min(bytes.len())))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_rest(cx))?;
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Early<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes this many bytes with each write.
    struct Narrow(usize, Vec<u8>);

    impl AsyncWrite for Narrow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = self.0.min(bytes.len());
            self.1.extend(&bytes[..taken]);
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn early_frames_follow_the_handshake_however_little_a_socket_takes() {
        let cx = &mut Context::from_waker(std::task::Waker::noop());
        for width in [1, 3, 5, 6, 7, 100] {
            let mut socket = Early::new(Narrow(width, Vec::new()), vec!["hi".into()]).unwrap();
            let frames = socket.frames.clone();
            let mut left = &b"GET /"[..];
            while !left.is_empty() {
                match Pin::new(&mut socket).poll_write(cx, left) {
                    Poll::Ready(Ok(written)) => left = &left[written..],
                    other => panic!("{other:?}"),
                }
            }
            let last = Pin::new(&mut socket).poll_write(cx, b"!");
            assert!(matches!(last, Poll::Ready(Ok(1))), "{last:?}");
            assert_eq!(socket.socket.1, [b"GET /", &frames[..], b"!"].concat(), "{width}");
        }
    }
}
