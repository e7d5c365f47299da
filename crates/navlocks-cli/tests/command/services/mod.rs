//! Services of users and of machines: how they start, end, and are set up.

mod starting;
mod restarts;
pub(crate) mod hanging;
mod settings;
mod supervision;
mod units;
mod operators;
mod place;
mod users;
mod tls;
