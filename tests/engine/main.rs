//! The engine, compared with the naive model and with each required behaviour.

mod arbitrary;
mod capi;
mod histories;
mod shards;
mod replay;

mod support;
mod names;
mod scheduling;
mod scopes;
mod if_available;
mod abort;
mod timeout;
mod steal;
mod limits;
mod query;
mod clients;
mod usage;
mod memory;
mod acquire;
mod explainer;
mod evaluation;
mod decisions;
mod tokens;
mod nesting;
mod fast_path;
mod kit;
mod holds;
mod host;
