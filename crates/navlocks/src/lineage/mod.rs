//! The older APIs of the same lineage, in Rust form: thin, and on the same engine as the rest.
//!
//! The Web Locks API had several forms before the present one. They are here for programs written
//! in their terms, and to show how they relate; new code should use
//! [`Locks::request`](crate::Locks::request).
//!
//! | then | here | today |
//! |---|---|---|
//! | `requestFlag(scope, mode, {timeout})` | [`request_flag`] | [`request`](crate::Locks::request)`(scope)`[`.timeout`](crate::Request::timeout)`(…)`[`.auto()`](crate::Request::auto) |
//! | `requestLock(scope, {mode})` | [`request_lock`] | `request(scope)`[`.mode`](crate::Request::mode)`(…).auto()` |
//! | `navigator.locks.acquire(name, options, callback)` | [`acquire`] | `request(name)`[`.with`](crate::Request::with)`(…)` |
//! | `navigator.locks.forceRelease(name)` | [`force_release`] | [`Locks::force_release`](crate::Locks::force_release) |
//! | the adapters of the explainer's FAQ | [`adapters`] | the three ways to use a [`Request`](crate::Request) |
//!
//! # The three release styles
//!
//! The explainer compared three ways to release a lock and showed that each can be made from each.
//! Rust has all three:
//!
//! | style | | released when |
//! |---|---|---|
//! | scoped | [`request.with(work)`](crate::Request::with) | the work ends |
//! | explicit | [`request.await`](crate::Lock) | [`release()`](crate::Lock::release) is called, or the lock dropped |
//! | automatic | [`request.auto()`](AutoLock) | all works have ended |
//!
//! # What changed since, everywhere
//!
//! - A signal to abort is the drop of the future. It takes effect at once and needs no option.
//! - An empty scope cannot be made, so nothing has to reject it: see
//!   [`Scope::new`](crate::Scope::new).
//! - A client that holds or waits receives the loss and its cause when another client takes the
//!   lock.

mod auto;
mod flag;
mod lock;
mod acquire;
pub mod adapters;
mod gate;

pub use acquire::{AcquireOptions, acquire, force_release};
pub use auto::{AutoLock, ReleaseError, Released, WeakAutoLock};
pub use flag::{Flag, request_flag};
pub use lock::request_lock;
