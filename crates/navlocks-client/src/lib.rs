//! The session of a client of a navlocks service, without clock, socket or task.
//!
//! A driver does the I/O: it dials the address of a [`Route`], pauses by a [`Backoff`], and passes
//! each [`Moment`] and each random number in. So the whole of a session runs in virtual time. This
//! crate is for authors of another client in Rust; other programs use `Locks::connect` of the crate
//! `navlocks`.
//!
//! ```
//! use navlocks_client::{Addresses, DialError, Moment, Next, Route};
//!
//! let addresses = Addresses::parse("wss://n1:7400,n2:7400")?;
//! let mut route = Route::new(&addresses, true, 0);
//! assert_eq!(route.target().url.to_string(), "wss://n1:7400/");
//! let unreachable = DialError { refused: None, greeted: false };
//! assert_eq!(route.failed(&unreachable, Moment::from_nanoseconds(0)), Next::AtOnce);
//! assert_eq!(route.target().url.to_string(), "wss://n2:7400/");
//! # Ok::<(), String>(())
//! ```

#![forbid(unsafe_code)]

mod addresses;
mod backoff;
mod keepalive;
mod lease;
mod moment;
mod queries;
mod requests;
mod route;
mod session;
mod url;

pub use addresses::Addresses;
pub use backoff::{Backoff, Starts, jitter};
pub use keepalive::{Due, Keepalive, SIGN_OF_LIFE};
pub use lease::Lease;
pub use moment::Moment;
pub use queries::{KnownQuery, QueryFailure};
pub use requests::{KnownRequest, Lapsed, Stage, is_steal};
pub use route::{DialError, Next, Route, Target, code_of_status};
pub use session::KnownSession;
pub use url::Url;
