//! Which service is meant, and how to reach it.

use std::path::PathBuf;

use clap::Args;
use navlocks::Locks;

use crate::exit::{Exit, Failure};
use crate::place::{Found, Place};

/// The variable with the access token. Never an argument: those can be read by everybody on the machine.
const TOKEN_VARIABLE: &str = "NAVLOCKS_TOKEN";

#[derive(Debug, Args)]
#[command(next_help_heading = "Service")]
pub(super) struct Target {
    /// The service: unix:PATH, ws://HOST:PORT or wss://HOST:PORT [default: the user's own, started when needed]
    #[arg(long, value_name = "URL", env = "NAVLOCKS_URL", hide_env_values = true)]
    url: Option<String>,
    /// A lock space of its own: the same name in another partition is another lock
    #[arg(long, value_name = "NAME", env = "NAVLOCKS_PARTITION", hide_env_values = true)]
    partition: Option<String>,
    /// A file with the access token [default: the variable NAVLOCKS_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Target {
    pub(super) async fn connect(&self) -> Result<Locks, Failure> {
        Ok(Locks::new())
    }
}
