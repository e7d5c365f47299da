//! Chaos: clients that act at random, and a conductor that disturbs them at random.
//!
//! ```text
//!   Conductor ── starts, kills, stops, continues ──▶ recorder (a Client in each)   ──▶ c1.jsonl, c2.jsonl, …
//!       │                                                │ requests
//!       │                                                ▼
//!       ├─────── starts, kills, stops, continues ──▶ Service
//!       ▼
//!   conductor.jsonl                                                      all of them ──▶ History ──▶ check
//! ```

mod client;
mod conductor;
mod dice;
mod errand;
mod service;

pub use client::{Client, Habits};
pub use conductor::{Conductor, Ended, Plan};
pub use dice::{Dice, chaos_time, seed};
pub use errand::Errand;
pub use service::Service;
