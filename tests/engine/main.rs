//! The engine, compared with the naive model and with each required behaviour.

mod histories;

mod support;
mod standard;
mod limits;
mod explainer;
mod tokens;
mod nesting;
mod kit;
