//! The behaviours of the standard.

mod names;
mod scheduling;
mod if_available;
mod abort;
mod timeout;
mod steal;
mod query;
mod clients;
mod usage;
