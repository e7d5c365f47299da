//! The session of a client of a navlocks service, without clock, socket or task.
//!
//! A driver does the I/O: it carries out the commands of a [`Machine`], and passes the messages of
//! the service, each [`Moment`] and a random number in. So a whole session runs in virtual time.
//! This crate is for authors of another client in Rust; other programs use `Locks::connect` of the
//! crate `navlocks`.
//!
//! ```
//! use navlocks_client::{Addresses, Begin, Command, Machine, Moment, Settings};
//!
//! let addresses = Addresses::parse("wss://n1:7400")?;
//! let now = Moment::from_nanoseconds(0);
//! let mut machine: Machine<()> = Machine::new(Settings::new(addresses, Begin::Once), 0, now);
//! let Some(Command::Dial(url)) = machine.poll_command() else { unreachable!() };
//! assert_eq!(url.to_string(), "wss://n1:7400/");
//! machine.dialed(false, None, now);
//! assert_eq!(machine.poll_command(), Some(Command::Open));
//! machine.opened(now);
//! let Some(Command::Send(hello)) = machine.poll_command() else { unreachable!() };
//! assert_eq!(hello, r#"{"hello":{}}"#);
//! # Ok::<(), String>(())
//! ```

#![forbid(unsafe_code)]

mod addresses;
mod backoff;
mod holds;
mod keepalive;
mod lease;
mod machine;
mod moment;
mod queries;
mod requests;
mod route;
mod session;
mod url;

pub use addresses::Addresses;
pub use backoff::{Backoff, jitter};
pub use machine::{
    Begin, Command, DialFailure, Event, Failure, LinkState, Machine, Outcome, Settings,
};
pub use moment::Moment;
pub use queries::QueryFailure;
pub use requests::{LossCause, Over};
pub use route::code_of_status;
pub use url::Url;
