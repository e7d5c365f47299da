//! Frames: messages that are written already. One text can lie in many outboxes and is there once.

use std::rc::Rc;

use tokio_tungstenite::tungstenite::protocol::frame::Frame as Piece;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Bytes, Message, Utf8Bytes};

use super::shares::Share;

/// A longer message is written in several pieces of this size, so that no more of it is copied than
/// the socket takes.
const PIECE_BYTES: usize = 16 << 10;

/// To copy this many bytes costs less than to write two pieces.
const COPIED_BYTES_MAX: usize = 1 << 10;

/// A message for one connection.
#[derive(Debug)]
pub struct Frame {
    /// The text for this connection alone, before the shared rest.
    own: Utf8Bytes,
    shared: Option<(Text, usize)>,
    /// How much of it is written.
    written: usize,
}

/// The text of messages that differ only at their beginning. It counts once in the share of a
/// tenant.
#[derive(Clone, Debug)]
pub(crate) struct Text(Rc<Counted>);

#[derive(Debug)]
struct Counted {
    text: Utf8Bytes,
    share: Rc<Share>,
}

impl Text {
    pub(crate) fn new(text: String, share: Rc<Share>) -> Self {
        share.unread.add(text.len());
        Self(Rc::new(Counted { text: text.into(), share }))
    }

    /// Returns the text.
    pub(crate) fn as_str(&self) -> &str {
        self.0.text.as_str()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.share.unread.sub(self.text.len());
    }
}

impl Frame {
    /// A message for one connection alone.
    #[inline]
    pub(crate) fn own(text: String) -> Self {
        Self { own: text.into(), shared: None, written: 0 }
    }

    /// A message that begins with `head` and goes on with the shared text from `from` on. A short
    /// one is copied.
    pub(crate) fn shared(mut head: String, text: &Text, from: usize) -> Self {
        let rest = &text.as_str()[from..];
        if rest.len() <= COPIED_BYTES_MAX {
            head.push_str(rest);
            return Self::own(head);
        }
        Self { own: head.into(), shared: Some((text.clone(), from)), written: 0 }
    }

    /// Returns its length in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.own.len() + self.rest().map_or(0, str::len)
    }

    /// Returns how many bytes no other connection shares.
    #[inline]
    pub(crate) fn own_len(&self) -> usize {
        self.own.len()
    }

    fn rest(&self) -> Option<&str> {
        self.shared.as_ref().map(|(text, from)| &text.as_str()[*from..])
    }

    /// Returns the whole message.
    pub fn text(&self) -> String {
        format!("{}{}", self.own.as_str(), self.rest().unwrap_or_default())
    }

    /// Returns true if some of it is written, and some is not.
    pub(crate) fn is_begun(&self) -> bool {
        self.written > 0
    }

    /// Returns the next piece to be written.
    #[inline]
    pub(crate) fn next(&mut self) -> Next {
        if self.shared.is_none() && self.own.len() <= PIECE_BYTES {
            let (bytes, text) = (self.own.len(), std::mem::take(&mut self.own));
            return Next { message: Message::Text(text), bytes, copied: 0, last: true };
        }
        self.next_piece()
    }

    fn next_piece(&mut self) -> Next {
        let (len, own) = (self.len(), self.own.len());
        let (bytes, from, shared) = match &self.shared {
            Some((text, from)) if self.written >= own => {
                (Bytes::from(text.0.text.clone()), self.written - own + from, true)
            }
            _ => (Bytes::from(self.own.clone()), self.written, false),
        };
        let piece = bytes.slice(from..bytes.len().min(from + PIECE_BYTES));
        let kind = if self.written == 0 { Data::Text } else { Data::Continue };
        self.written += piece.len();
        let last = self.written == len;
        let (bytes, copied) = (piece.len(), if shared { piece.len() } else { 0 });
        let message = Message::Frame(Piece::message(piece, OpCode::Data(kind), last));
        Next { message, bytes, copied, last }
    }
}

/// A piece of a message.
pub(crate) struct Next {
    pub(crate) message: Message,
    pub(crate) bytes: usize,
    /// How many of the bytes were shared until now.
    pub(crate) copied: usize,
    /// Whether the message is whole with it.
    pub(crate) last: bool,
}
