//! What a session's connection has yet to write. Filled by whoever has something to say, emptied by the connection's task.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::Waker;

use navlocks_wire::{self as wire, Fault, ToClient};

/// The messages that wait to be written to one connection, in order.
#[derive(Clone, Debug)]
pub struct Outbox(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    frames: Vec<String>,
    /// What lies here and in the connection's own buffer.
    bytes: usize,
    bytes_max: usize,
    ending: Option<Fault>,
    waker: Option<Waker>,
    /// The connection's task runs now and will look again before it sleeps, so it need not be woken.
    looking: bool,
}

impl Inner {
    fn waker(&mut self) -> Option<Waker> {
        if self.looking { None } else { self.waker.take() }
    }
}

/// More was to be said than a reader may leave unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Outbox {
    /// Makes an outbox for one connection. A reader that leaves more bytes than this unread is slow.
    pub fn new(bytes_max: usize) -> Self {
        Self(Rc::new(RefCell::new(Inner {
            frames: Vec::new(),
            bytes: 0,
            bytes_max,
            ending: None,
            waker: None,
            looking: false,
        })))
    }

    /// Adds a message. Nothing more is taken once the end was told.
    pub(crate) fn push(&self, message: &ToClient) -> Result<(), Full> {
        self.push_frame(wire::write(message))
    }

    /// Adds a message that is written already.
    pub(crate) fn push_frame(&self, frame: String) -> Result<(), Full> {
        let mut inner = self.0.borrow_mut();
        if inner.ending.is_some() {
            return Ok(());
        }
        inner.bytes += frame.len();
        if inner.bytes > inner.bytes_max {
            return Err(Full);
        }
        inner.frames.push(frame);
        if let Some(waker) = inner.waker() {
            drop(inner);
            waker.wake();
        }
        Ok(())
    }

    /// Counts bytes that the connection has put into its own buffer without a message from here.
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), Full> {
        let mut inner = self.0.borrow_mut();
        inner.bytes += bytes;
        if inner.bytes > inner.bytes_max { Err(Full) } else { Ok(()) }
    }

    /// Nothing is to follow but this fault, and then the connection closes.
    pub fn end(&self, fault: Fault) {
        let mut inner = self.0.borrow_mut();
        inner.ending.get_or_insert(fault);
        if let Some(waker) = inner.waker() {
            drop(inner);
            waker.wake();
        }
    }

    /// Takes all messages, in exchange for an empty list whose memory is used again.
    pub fn take(&self, into: &mut Vec<String>) {
        std::mem::swap(&mut self.0.borrow_mut().frames, into);
    }

    /// All that was taken is written.
    pub fn written(&self) {
        let mut inner = self.0.borrow_mut();
        if inner.bytes > 0 {
            inner.bytes = inner.frames.iter().map(String::len).sum();
        }
    }

    /// Why the connection is to be closed, if it is.
    pub fn ending(&self) -> Option<Fault> {
        self.0.borrow().ending.clone()
    }

    /// The connection's task runs, and [registers](Self::register) before it sleeps again.
    pub(crate) fn look(&self) {
        self.0.borrow_mut().looking = true;
    }

    /// Wakes this task when there is something to write. It has just taken all there was.
    pub(crate) fn register(&self, waker: &Waker) {
        let mut inner = self.0.borrow_mut();
        inner.looking = false;
        let known = &mut inner.waker;
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }
}
