//! The Web Locks API as a state machine.
//!
//! ```text
//!            request  release  abort  terminate  force_release  suspend  resume  query
//!                │       │       │        │            │            │       │      │
//!                ▼       ▼       ▼        ▼            ▼            ▼       ▼      ▼
//!   ┌──────────────────────────────── LockManager ─────────────────────────────────────┐
//!   │                                                                                  │
//!   │   name    its queue: every entry that wants the name, in order                   │
//!   │   ────    ──────────────────────────────────────────────────────                 │
//!   │   "a"  →  [ X r1 ]   X r4                                                        │
//!   │   "b"  →  [ S r2     S r3 ]   X r4   S r5       r4 wants a and b at once         │
//!   │   "c"  →  [ X r6 ]                                                               │
//!   │              └─ clear: nothing earlier conflicts                                 │
//!   │                                                                                  │
//!   │   An entry is held exactly when it is clear in all its queues.                   │
//!   └──────────────────────────────────────┬───────────────────────────────────────────┘
//!                                          ▼
//!                     poll_event:  Granted  Unavailable  Lost  Aborted  Evicted
//! ```
//!
//! # What it is for
//!
//! Everything that decides who holds a lock, and nothing else: no I/O, no clock, no threads, no `async`, no `unsafe`, no
//! `std`. The same inputs always give the same events. It is meant to be embedded as it is: in a browser
//! engine behind `navigator.locks`, in a JavaScript runtime, in a lock service, under an async API.
//!
//! # An embedding
//!
//! A loop that owns a [`LockManager`] is all there is to it. Messages come in from clients, events go out to them:
//!
//! ```
//! use navlocks_core::{ClientId, Event, HashKey, LockManager, Request, RequestId};
//! use std::sync::mpsc::{Receiver, Sender, channel};
//!
//! enum Message {
//!     Hello(Sender<Event>, Sender<ClientId>), // where the client wants its events, and who it is from now on
//!     Request(ClientId, Request),
//!     Release(RequestId),
//!     Bye(ClientId), // its worker ended, its socket closed, its process died
//! }
//!
//! fn lock_task_queue(messages: Receiver<Message>) {
//!     let mut manager = LockManager::new(HashKey::from_bytes([7; 16])); // random where names come from outside
//!     let mut outboxes: Vec<Option<Sender<Event>>> = Vec::new(); // by ClientId::slot()
//!     for message in messages {
//!         match message {
//!             Message::Hello(outbox, reply) => {
//!                 let client = manager.add_client();
//!                 outboxes.resize(outboxes.len().max(client.slot() + 1), None);
//!                 outboxes[client.slot()] = Some(outbox);
//!                 let _ = reply.send(client);
//!             }
//!             Message::Request(client, request) => drop(manager.request(client, request)),
//!             Message::Release(lock) => drop(manager.release(lock)),
//!             Message::Bye(client) => drop(manager.terminate(client)),
//!         }
//!         while let Some(event) = manager.poll_event() {
//!             if let Some(outbox) = &outboxes[event.client().slot()] {
//!                 let _ = outbox.send(event); // a client that is gone says Bye
//!             }
//!         }
//!     }
//! }
//! #
//! # let (to_manager, messages) = channel();
//! # let manager = std::thread::spawn(|| lock_task_queue(messages));
//! # let hello = || {
//! #     let ((outbox, events), (reply, id)) = (channel(), channel());
//! #     to_manager.send(Message::Hello(outbox, reply)).unwrap();
//! #     (id.recv().unwrap(), events)
//! # };
//! # let ((first, first_events), (second, second_events)) = (hello(), hello());
//! # to_manager.send(Message::Request(first, Request::exclusive("a"))).unwrap();
//! # to_manager.send(Message::Request(second, Request::shared(["a", "b"]))).unwrap();
//! # assert!(matches!(first_events.recv().unwrap(), Event::Granted { .. }));
//! # to_manager.send(Message::Bye(first)).unwrap();
//! # assert!(matches!(second_events.recv().unwrap(), Event::Granted { .. }));
//! # drop(to_manager);
//! # manager.join().unwrap();
//! ```
//!
//! The argument checks of the standard's own surface are [`request_method_steps`] and [`query_method_steps`]; other
//! surfaces, which may use all names and waits, go without.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

// In reading order: what is asked, what is told, how it is stored, what happens, what can be asked about it.
mod name;
mod scope;
mod id;
mod request;
mod event;
mod arguments;
mod manager;
mod slots;
mod client;
mod entry;
mod hash;
mod queue;
mod seating;
mod numbers;
mod single;
mod requesting;
mod processing;
mod suspending;
#[cfg(target_has_atomic = "64")]
mod parts;
mod snapshot;
mod blockers;
mod deadlock;
mod invariants;

#[cfg(test)]
mod cost;

pub use arguments::{
    Environment, LockOptions, Rejection, Signal, query_method_steps, request_method_steps,
};
pub use blockers::Blockers;
pub use deadlock::{Deadlock, DeadlockPolicy};
pub use event::{Cause, Event};
pub use id::{ClientId, FencingToken, RequestId, TokenTooLarge};
pub use manager::LockManager;
pub use name::{EscapeError, Name};
pub use queue::HashKey;
pub use request::{Answer, HandOver, Mode, Request, RequestError, Wait};
pub use scope::{EmptyScope, Scope};
pub use snapshot::{LockInfo, Snapshot, State};
pub use suspending::SuspendPolicy;
