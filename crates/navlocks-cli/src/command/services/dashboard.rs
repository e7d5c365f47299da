//! `navlocks dashboard`.

use std::io::{IsTerminal as _, stdout};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;
use navlocks_dashboard::Gateway;
use tokio::signal::unix::{SignalKind, signal};

use crate::command::target::Target;
use crate::exit::{Exit, Failure};
use crate::printer;

/// Show locks in a web browser, live
///
/// Opens a page about the user's own service: names that are stuck, clients that block others,
/// deadlocks, the last ten minutes, clients and events. The page is at a loopback port that is
/// there as long as this command runs; its address works once. A service elsewhere shows its own
/// page: navlocks serve --dashboard.
#[derive(Debug, Args)]
pub(crate) struct Dashboard {
    /// Let the page release and steal locks and end sessions
    #[arg(long)]
    actions: bool,
    /// The loopback port of the page; 0 for any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Print the address, and open no browser
    #[arg(long)]
    no_open: bool,
    #[command(flatten)]
    target: Target,
}

impl Dashboard {
    pub(crate) async fn perform(self) -> Result<(), Failure> {
        let socket = self.socket()?;
        let system = |error: std::io::Error| Failure::new(Exit::System, error.to_string());
        let mut interrupt = signal(SignalKind::interrupt()).map_err(system)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(system)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(system)?;
        // Starts the service if it does not run, and keeps it from ending while the page is there.
        let locks = self.target.connect().await?;
        let gateway = Gateway::bind(&socket, self.port, self.actions).await.map_err(|error| {
            let port = self.port;
            Failure::new(Exit::Busy, format!("cannot listen on 127.0.0.1:{port}: {error}"))
        })?;
        let url = gateway.url();
        printer::print(&format!("the dashboard is at {url}\n"))?;
        if !self.no_open && stdout().is_terminal() {
            open(&url);
        }
        let ended = async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
        };
        let served = gateway.run(ended).await.map_err(system);
        Target::finish(locks).await;
        served
    }

    /// Returns the socket of the target service.
    fn socket(&self) -> Result<PathBuf, Failure> {
        if let Some(place) = self.target.place()? {
            return Ok(place.socket());
        }
        let url = self.target.url().unwrap_or_default();
        match url.strip_prefix("unix:") {
            Some(path) => Ok(path.into()),
            None => {
                let text = format!(
                    "{url} is not a Unix socket: a service elsewhere shows its own page, with navlocks serve --dashboard"
                );
                Err(Failure::new(Exit::Usage, text))
            }
        }
    }
}

/// Opens an address in the user's browser, if the desktop knows one. The address is printed too.
fn open(url: &str) {
    let mut opener = Command::new("xdg-open");
    let opener = opener.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _printed = opener.spawn();
}
