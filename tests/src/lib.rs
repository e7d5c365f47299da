//! The tests of navlocks: naive models of the lock manager, random histories, and the engine beside
//! them.
//!
//! A [`history::Op`] is the next operation; [`history::play`] turns each into inputs of the model
//! and shows it to witnesses. The [`engine::Engine`] is a witness that does the same and objects to
//! any difference; so are the [`single::SingleNamed`] texts. The [`listing::Listing`] and the
//! [`tally::Tally`] only observe.
//!
//! Real processes have no witness: they write [`record`]s, which are [`check`]ed afterwards, while
//! a [`chaos::Conductor`] kills, stops and restarts them.

#![forbid(unsafe_code)]

pub mod engine;
pub mod history;
pub mod model;
pub mod replay;
pub mod single;
pub mod listing;
pub mod tally;

#[cfg(feature = "processes")]
pub mod record;
#[cfg(feature = "processes")]
pub mod check;
#[cfg(feature = "processes")]
pub mod chaos;

mod bytes;
mod quiet;

// Only doctests are there: the snippets of the front documents.
#[cfg(doctest)]
mod readme;
