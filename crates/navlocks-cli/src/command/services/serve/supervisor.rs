//! Notifications for systemd: the service grants locks, needs more time, lives.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tokio::time::sleep;

/// How often a service that starts looks whether it grants locks, and for how long it asks then.
const LOOK: Duration = Duration::from_millis(250);
const EXTENSION: Duration = Duration::from_secs(30);

/// The time that an end in good order may take: slots are given away, and clients are told.
const ENDING: Duration = Duration::from_secs(30);

/// The supervisor that started this process, if it wants to be told.
pub(super) struct Supervisor {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// The supervisor ends a service that is silent for so long.
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// Returns the supervisor that the environment names.
    pub(super) fn of_environment() -> Self {
        let socket = env::var("NOTIFY_SOCKET").ok().and_then(|name| {
            let open = || -> io::Result<_> {
                let address = match name.strip_prefix('@') {
                    Some(name) => SocketAddr::from_abstract_name(name)?,
                    None => SocketAddr::from_pathname(&name)?,
                };
                let socket = UnixDatagram::unbound()?;
                socket.set_nonblocking(true)?;
                Ok((socket, address))
            };
            open().inspect_err(|error| tracing::warn!(%error, "cannot use NOTIFY_SOCKET")).ok()
        });
        let number = |name| env::var(name).ok()?.parse::<u64>().ok();
        let is_mine = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|&micros| is_mine && micros > 0);
        Self { socket, watchdog: watchdog.map(Duration::from_micros) }
    }

    /// Tells the supervisor when the service grants locks, and from then on that it lives. Never
    /// returns.
    pub(super) async fn attend(&self, unready: impl Fn() -> Option<String>) {
        if self.socket.is_none() {
            return std::future::pending().await;
        }
        while let Some(reason) = unready() {
            let (micros, reason) = (EXTENSION.as_micros(), one_line(&reason));
            self.send(&format!("EXTEND_TIMEOUT_USEC={micros}\nSTATUS={reason}\n"));
            sleep(LOOK).await;
        }
        self.send("READY=1\nSTATUS=grants locks\n");
        let Some(watchdog) = self.watchdog else { return std::future::pending().await };
        loop {
            let status = unready().unwrap_or_else(|| "grants locks".to_owned());
            self.send(&format!("WATCHDOG=1\nSTATUS={}\n", one_line(&status)));
            sleep(watchdog / 3).await;
        }
    }

    /// Tells the supervisor that the service ends in good order.
    pub(super) fn stopping(&self) {
        self.send(&format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={}\n", ENDING.as_micros()));
    }

    fn send(&self, state: &str) {
        if let Some((socket, address)) = &self.socket {
            // A supervisor that does not read loses a message, and the service goes on.
            let _lost = socket.send_to_addr(state.as_bytes(), address);
        }
    }
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
