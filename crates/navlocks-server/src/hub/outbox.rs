//! Messages that a session's connection has yet to write. The hub fills it, and the connection's
//! task empties it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use navlocks_wire::{self as wire, Fault, ToClient};

use super::frame::Frame;
use super::shares::Share;
use crate::cluster::{ChangeNumber, Gate, Ticket};
use crate::config::Limits;

/// The messages that wait to be written to one connection, in order.
#[derive(Clone, Debug)]
pub struct Outbox(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    frames: VecDeque<Frame>,
    /// The bytes here and in the connection's own buffer.
    bytes: usize,
    /// How much of it counts in the share of the tenant. Text that several outboxes share counts
    /// there once.
    counted: usize,
    bytes_max: usize,
    share: Rc<Share>,
    tenant_bytes_max: usize,
    ending: Option<Fault>,
    /// The reader is slow, and its session is about to end.
    full: bool,
    waker: Option<Waker>,
    /// The connection's task runs now and will look again before it sleeps, so it need not be
    /// woken.
    looking: bool,
    /// In a cluster: what frames have to pass.
    gated: Option<Box<Gated>>,
}

/// The frames of an outbox that depend on changes which may not be durable yet.
#[derive(Debug)]
struct Gated {
    gate: Rc<Gate>,
    /// All frames of the session depend on its beginning.
    begun: ChangeNumber,
    held: VecDeque<(ChangeNumber, Frame)>,
    ticket: Ticket,
}

impl Gated {
    /// Returns true if frames that are sent now have to wait.
    #[inline]
    fn holds(&self) -> bool {
        !self.held.is_empty() || !self.gate.is_durable(self.gate.barrier().max(self.begun))
    }
}

impl Inner {
    /// Adds a frame, behind those that wait for a change.
    fn add(&mut self, frame: Frame) {
        match &mut self.gated {
            Some(gated) if gated.holds() => {
                let depends_on = gated.gate.barrier().max(gated.begun);
                gated.held.push_back((depends_on, frame));
            }
            _ => self.frames.push_back(frame),
        }
    }

    /// Moves the frames that wait no more to the others.
    fn release_durable(&mut self) {
        let Some(gated) = &mut self.gated else { return };
        while let Some(&(change, _)) = gated.held.front()
            && gated.gate.is_durable(change)
        {
            self.frames.extend(gated.held.pop_front().map(|(_, frame)| frame));
        }
    }

    fn waker(&mut self) -> Option<Waker> {
        if self.looking { None } else { self.waker.take() }
    }

    #[inline]
    fn count(&mut self, bytes: usize) {
        self.counted += bytes;
        self.share.unread.add(bytes);
    }

    /// Returns true if the reader is slow, alone or as the one with more than its part of what its
    /// tenant left unread.
    #[inline]
    fn is_full(&self) -> bool {
        self.bytes > self.bytes_max
            || (self.share.unread.get() > self.tenant_bytes_max
                && self.bytes > self.tenant_bytes_max / self.share.connections.get().max(1))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.share.unread.sub(self.counted);
    }
}

/// More was to be said than a reader may leave unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Outbox {
    /// Makes an outbox for one connection. A reader that leaves more bytes than this unread is
    /// slow.
    pub fn new(bytes_max: usize) -> Self {
        Self::with(bytes_max, Rc::default(), usize::MAX)
    }

    /// Makes an outbox whose bytes count in the share of a tenant.
    pub(crate) fn of(share: Rc<Share>, limits: &Limits) -> Self {
        Self::with(limits.outbox_bytes_max, share, limits.unread_bytes_per_tenant_max)
    }

    fn with(bytes_max: usize, share: Rc<Share>, tenant_bytes_max: usize) -> Self {
        Self(Rc::new(RefCell::new(Inner {
            frames: VecDeque::new(),
            bytes: 0,
            counted: 0,
            bytes_max,
            share,
            tenant_bytes_max,
            ending: None,
            full: false,
            waker: None,
            looking: false,
            gated: None,
        })))
    }

    /// Lets frames wait at a gate until this change, the beginning of the session, is durable.
    pub(crate) fn pass_through(&self, gate: &Rc<Gate>, begun: ChangeNumber) {
        let (ticket, gate, held) = (gate.ticket(), gate.clone(), VecDeque::new());
        self.0.borrow_mut().gated = Some(Box::new(Gated { gate, begun, held, ticket }));
    }

    /// Returns true if frames may be sent now. If not, or if some wait for a change, this task is
    /// woken when it should look again.
    #[inline]
    pub fn may_send(&self, waker: &Waker) -> bool {
        let inner = self.0.borrow();
        let Some(gated) = &inner.gated else { return true };
        let may_send = gated.gate.may_send();
        if !may_send || !gated.held.is_empty() {
            gated.gate.add_waiting(gated.ticket, waker);
        }
        may_send
    }

    /// Adds a message. Nothing more is taken once the end was told.
    pub(crate) fn push(&self, message: &ToClient) -> Result<(), Full> {
        self.push_frame(Frame::own(wire::write(message)))
    }

    /// Adds a message that is written already. The first one too many is an error, and nothing is
    /// taken after it.
    pub(crate) fn push_frame(&self, frame: Frame) -> Result<(), Full> {
        let mut inner = self.0.borrow_mut();
        if inner.full || inner.ending.is_some() {
            return Ok(());
        }
        inner.bytes += frame.len();
        inner.count(frame.own_len());
        inner.add(frame);
        if inner.is_full() {
            inner.full = true;
            return Err(Full);
        }
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
        inner.count(bytes);
        if inner.is_full() { Err(Full) } else { Ok(()) }
    }

    /// Counts bytes of shared text that the connection has copied into its own buffer.
    pub(crate) fn copied(&self, bytes: usize) {
        self.0.borrow_mut().count(bytes);
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

    /// Takes all messages that may be sent, in exchange for an empty list whose memory is used
    /// again.
    pub fn take(&self, into: &mut VecDeque<Frame>) {
        let mut inner = self.0.borrow_mut();
        inner.release_durable();
        std::mem::swap(&mut inner.frames, into);
    }

    /// So many bytes of what was taken are written.
    pub(crate) fn written(&self, bytes: usize) {
        let mut inner = self.0.borrow_mut();
        inner.bytes = inner.bytes.saturating_sub(bytes);
        let counted = inner.counted.min(bytes);
        inner.counted -= counted;
        inner.share.unread.sub(counted);
    }

    /// All that was ever taken is written.
    pub fn written_all(&self) {
        let inner = self.0.borrow();
        let held = inner.gated.iter().flat_map(|gated| &gated.held).map(|(_, frame)| frame);
        let left: usize = inner.frames.iter().chain(held).map(Frame::len).sum();
        let bytes = inner.bytes;
        drop(inner);
        self.written(bytes - left);
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
    pub fn register(&self, waker: &Waker) {
        let mut inner = self.0.borrow_mut();
        inner.looking = false;
        let known = &mut inner.waker;
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }
}
