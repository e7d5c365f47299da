//! What proves navlocks: naive models of the lock manager, random histories, and the engine beside
//! them.
//!
//! A [`history::Op`] is what somebody might do next; [`history::play`] turns each into inputs of
//! the model and lets witnesses look on. The [`engine::Engine`] is a witness that does the same and
//! objects to any difference; so are the [`single::SingleNamed`] texts, and the [`story::Story`]
//! and the [`tally::Tally`] that only listen.
//!
//! For real processes nobody looks on: they write [`record`]s, which are [`check`]ed afterwards,
//! while a [`chaos::Conductor`] kills, stops and restarts them.

#![forbid(unsafe_code)]

pub mod engine;
pub mod history;
pub mod model;
pub mod replay;
pub mod single;
pub mod story;
pub mod tally;

#[cfg(feature = "processes")]
pub mod record;
#[cfg(feature = "processes")]
pub mod check;
#[cfg(feature = "processes")]
pub mod chaos;

mod bytes;
mod quiet;

// Only doctests live there: the snippets of the front documents.
#[cfg(doctest)]
mod readme;
