//! A service from its start to its end.

mod sockets;

use std::io;
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, UnixListener};
use tokio::task::{JoinHandle, LocalSet, spawn_local, yield_now};
use tokio::time::{sleep, timeout};

use crate::cluster::Membership;
use crate::config::Config;
use crate::connection::{Shared, attend_found};
use crate::hub::Recording;
use crate::hubs::Hubs;
use crate::inspect::Observer;
use crate::net::{self, Address, Inherited, Listener, SocketFile, check_path};
use crate::store::{StateFile, boot_ms};
use crate::{node, reload};
use sockets::{Sockets, check_reach, listen, listen_again, read_files};

/// How long a service whose sockets were made for it waits for an earlier one to end, which has to
/// notice that first.
const EARLIER_ENDS_MAX: Duration = Duration::from_secs(10);
const EARLIER_ENDS_PAUSE: Duration = Duration::from_millis(20);

/// How often the service looks whether its state was removed.
const KEEP_EVERY: Duration = Duration::from_secs(1);

/// A lock service that has its sockets. It serves while [`run`](Self::run) is polled.
#[allow(missing_debug_implementations, reason = "it is its sockets, and they say nothing of use")]
pub struct Service {
    shared: Shared,
    listeners: Vec<Listener>,
    addresses: Vec<Address>,
    socket_file: Option<SocketFile>,
}

impl Service {
    /// Takes the sockets that the configuration names. Must be called in a tokio runtime.
    ///
    /// # Errors
    ///
    /// A socket or a folder cannot be had; the error says what to do about it.
    pub async fn bind(config: Config) -> io::Result<Self> {
        let (tls, origins) = read_files(&config)?;
        if let (Some(path), Some(sharing)) = (&config.unix, config.shared_socket) {
            SocketFile::prepare(path, sharing)?;
        }
        // Before anything is touched: another service may have the place.
        let state = match &config.state_dir {
            Some(folder) => Some(take_state(folder, config.inherit).await?),
            None => None,
        };
        let mut sockets = Sockets { tls, listeners: Vec::new(), addresses: Vec::new() };
        let mut socket_file = None;
        if config.inherit {
            for inherited in net::inherited_sockets()? {
                match inherited {
                    Inherited::Unix(listener) => {
                        sockets.add_unix(UnixListener::from_std(listener)?)?
                    }
                    Inherited::Tcp(listener) => {
                        sockets.add_tcp(TcpListener::from_std(listener)?, &config)?;
                    }
                }
            }
        }
        for address in &config.tcp {
            let listener = listen(*address).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
            })?;
            sockets.add_tcp(listener, &config)?;
        }
        if let Some(path) = &config.unix {
            let (file, listener) = SocketFile::bind(path, config.shared_socket, state.as_ref())?;
            socket_file = Some(file);
            sockets.add_unix(listener)?;
        }
        let Sockets { tls, listeners, addresses } = sockets;
        if listeners.is_empty() {
            let text = "there is nothing to listen on: name a socket or an address";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        // Sessions without a lease end with their processes.
        let is_tcp = |address: &Address| matches!(address, Address::Tcp(_));
        let fresh = config.fresh || !addresses.iter().any(is_tcp);
        let long = match (&state, addresses.iter().all(is_tcp)) {
            (Some(state), false) => state.check_room_for_sockets(),
            _ => Ok(()),
        };
        let hubs = match long.and_then(|()| Hubs::of_service(&config, state, fresh)) {
            Ok(hubs) => hubs,
            Err(error) => {
                socket_file.inspect(SocketFile::remove);
                return Err(error);
            }
        };
        if let (Some(_), Some(folder)) = (config.shared_socket, &config.state_dir) {
            SocketFile::open_presence(folder)?;
        }
        Ok(Self {
            shared: Shared::new(config, origins, tls, hubs),
            listeners,
            addresses,
            socket_file,
        })
    }

    /// Checks the configuration and the files that it names. No socket and no folder is touched.
    ///
    /// # Errors
    ///
    /// A service with this configuration would not start.
    pub fn check(config: &Config) -> io::Result<()> {
        let (tls, _) = read_files(config)?;
        config.tcp.iter().try_for_each(|&address| check_reach(address, config, tls.is_some()))?;
        config.unix.as_deref().map_or(Ok(()), |path| check_path(path, config.shared_socket))?;
        match &config.state_dir {
            Some(folder) => StateFile::check(folder),
            None => Ok(()),
        }
    }

    /// Shows the locks of the service in a dashboard: over the Unix socket, and with
    /// [`Config::dashboard`] at the TCP addresses.
    #[must_use]
    pub fn with_dashboard(mut self, dashboard: impl Observer + 'static) -> Self {
        let dashboard = Rc::new(dashboard);
        let recording = &mut self.shared.hubs.common.recording;
        *recording = Recording(Some(dashboard.clone()));
        let recording = recording.clone();
        for hub in self.shared.hubs.all() {
            hub.borrow_mut().common.recording = recording.clone();
        }
        self.shared.observer = Some(dashboard);
        self
    }

    /// Makes the service a node of a cluster, which serves the slots that it owns. The cluster
    /// keeps what must outlive a node, so the configuration should name no state folder.
    ///
    /// # Errors
    ///
    /// The system's clock is wrong by centuries.
    pub fn into_node(mut self, node: Box<dyn Membership>) -> io::Result<Self> {
        self.shared.hubs = Hubs::of_cluster(node, self.shared.hubs.common.clone())?;
        Ok(self)
    }

    /// Returns how many connections over TCP the limits and the open files of the process allow.
    pub fn seats(&self) -> usize {
        self.shared.seats()
    }

    /// Returns a function that makes the service read its tokens and its certificate again, whether
    /// or not their files have changed.
    pub fn reload(&self) -> impl Fn() + use<> {
        let reload = self.shared.reload.clone();
        move || reload.notify_one()
    }

    /// Returns a function that tells why the service can grant no lock now, if it cannot: as
    /// `/readyz` does.
    pub fn unready(&self) -> impl Fn() -> Option<String> + use<> {
        let hubs = self.shared.hubs.clone();
        move || hubs.unready()
    }

    /// Where the service can be reached.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Serves until `until` is ready, or it was idle for as long as it should be at most; then ends
    /// in good order. Dropped before, it ends as if it were killed.
    ///
    /// # Errors
    ///
    /// It had to end because it cannot remember what it must, or could not say that it ended in
    /// good order.
    pub async fn run(self, until: impl Future<Output = ()> + 'static) -> io::Result<()> {
        let tasks = LocalSet::new();
        // In a task of its own: what a set runs until is looked at whenever any of its tasks has
        // something to do.
        let served = tasks.spawn_local(self.serve(until));
        match tasks.run_until(served).await {
            Ok(ended) => ended,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    async fn serve(self, until: impl Future<Output = ()> + 'static) -> io::Result<()> {
        let Self { shared, listeners, addresses, mut socket_file } = self;
        let shared = Rc::new(shared);
        let mut doors: Vec<JoinHandle<()>> =
            listeners.into_iter().map(|door| spawn_local(door.serve(shared.clone()))).collect();
        match shared.hubs.single() {
            Some(hub) => attend_found(&shared, hub),
            None => drop(spawn_local(node::run(shared.clone()))),
        }
        let pacing = shared.clone();
        spawn_local(async move { pacing.pacing.run(pacing.config.limits.tenant_turn_max).await });
        reload::note_expiry(&shared.config, shared.metrics());
        spawn_local(reload::watch(shared.clone()));
        spawn_local(keep_state(shared.clone()));
        spawn_local(send_rest(shared.clone()));
        spawn_local(end_holds(shared.clone()));
        if let Some(observer) = &shared.observer {
            spawn_local(observer.run(shared.inspector()));
        }
        tracing::info!(?addresses, "the service listens");
        let exhausted = shared.hubs.common.exhausted.clone();
        let (mut until, mut idle) = (pin!(until), pin!(idle(&shared)));
        let ended = loop {
            tokio::select! {
                () = &mut until => break Ok(()),
                () = &mut idle => {
                    tracing::info!("no client came for a while");
                    break Ok(());
                }
                () = shared.panicked.notified() => {
                    let failed = || io::Error::other("the service has failed, as the log says: start it again");
                    break Err(shared.fatal.take().unwrap_or_else(failed));
                }
                () = exhausted.notified() => break Err(io::Error::other(
                    "the state file cannot be written, and fencing tokens would repeat: make room in the state folder",
                )),
                file = gone(&mut socket_file) => match listen_again(file, &shared) {
                    Ok(door) => doors.push(spawn_local(door.serve(shared.clone()))),
                    Err(error) => {
                        tracing::error!(%error, "the socket was removed and cannot be made again");
                        break Err(error);
                    }
                },
            }
        };
        for door in doors {
            door.abort();
            let _aborted = door.await;
        }
        socket_file.as_ref().inspect(|file| file.remove());
        ended.and(shut_down(&shared).await)
    }
}

/// Sends what large inputs left, in parts, so that other clients have their turns in between.
async fn send_rest(shared: Rc<Shared>) {
    let left_over = shared.hubs.common.left_over.clone();
    loop {
        left_over.notified().await;
        for hub in shared.hubs.all() {
            while hub.borrow_mut().go_on(Instant::now()) {
                yield_now().await;
            }
        }
    }
}

/// Takes away the locks whose time is over. The time goes on while the machine sleeps.
async fn end_holds(shared: Rc<Shared>) {
    const PAUSE_MAX: Duration = Duration::from_secs(1);
    let clocks = || (Instant::now(), boot_ms());
    let mut earlier = clocks();
    loop {
        let (now, ms) = clocks();
        let counted = now.duration_since(earlier.0);
        let slept = Duration::from_millis(ms.saturating_sub(earlier.1)).saturating_sub(counted);
        if slept > Duration::from_secs(1) {
            shared.hubs.all().iter().for_each(|hub| hub.borrow_mut().note_sleep(slept));
            earlier = (now, ms);
        }
        let due = shared.hubs.all().into_iter().filter_map(|hub| {
            let mut hub = hub.borrow_mut();
            if hub.is_retired() { None } else { hub.check_holds(now) }
        });
        let begins = shared.hubs.common.hold_begins.notified();
        match due.min() {
            Some(left) => drop(timeout(left.min(PAUSE_MAX), begins).await),
            None => {
                begins.await;
                earlier = clocks();
            }
        }
    }
}

/// Makes the state again if it was removed: the next service must know the sessions of this one.
async fn keep_state(shared: Rc<Shared>) {
    let mut is_kept = true;
    loop {
        sleep(KEEP_EVERY).await;
        shared.hubs.common.audit.report_floods(Instant::now());
        let Some(hub) = shared.hubs.single() else { continue };
        let hub = &mut *hub.borrow_mut();
        let kept = hub.store.kept_file().map(|_| ()).and_then(|()| hub.keep_registry());
        if let (Err(error), true) = (&kept, is_kept) {
            tracing::error!(%error, "the state was removed, and cannot be made again");
        }
        is_kept = kept.is_ok();
    }
}

/// Returns once the service was idle for the configured time; never if none is configured.
async fn idle(shared: &Shared) {
    let Some(patience) = shared.config.idle_exit else { return std::future::pending().await };
    loop {
        let emptied = shared.emptied.notified();
        if !shared.is_idle() {
            emptied.await;
            continue;
        }
        let arrivals = shared.arrivals();
        sleep(patience).await;
        if shared.is_idle() && shared.arrivals() == arrivals {
            return;
        }
    }
}

/// Takes the state folder. Where the sockets were made for this service, an earlier one may be
/// about to end.
async fn take_state(folder: &Path, wait: bool) -> io::Result<StateFile> {
    let until = Instant::now() + EARLIER_ENDS_MAX;
    loop {
        match StateFile::open(folder) {
            Err(error)
                if error.kind() == io::ErrorKind::ResourceBusy
                    && wait
                    && Instant::now() < until =>
            {
                sleep(EARLIER_ENDS_PAUSE).await;
            }
            taken => return taken,
        }
    }
}

/// The socket file, when it is gone.
async fn gone(file: &mut Option<SocketFile>) -> &mut SocketFile {
    match file {
        Some(file) => {
            file.gone().await;
            file
        }
        None => std::future::pending().await,
    }
}

/// Ends all sessions, waits a moment until their connections have heard, and writes that all is
/// well.
async fn shut_down(shared: &Shared) -> io::Result<()> {
    tracing::info!(connections = shared.connections(), "the service shuts down");
    shared.ending.send_replace(true);
    let left = node::leave(shared).await;
    if let Some(hub) = shared.hubs.single() {
        shared.could_not_tell(hub.borrow_mut().shut_down(Instant::now()));
    }
    let emptied = async {
        while shared.connections() > 0 {
            shared.emptied.notified().await;
        }
    };
    // Each connection has a time limit of its own.
    let patience = shared.config.limits.closing_max.saturating_add(Duration::from_secs(1));
    if timeout(patience, emptied).await.is_err() {
        shared.could_not_tell(Some(shared.config.limits.lease_max));
    }
    let ended = match shared.hubs.single() {
        Some(hub) => hub.borrow_mut().store.ended(shared.untold()),
        None => Ok(()),
    };
    left.and(ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_of_a_crowd_wait_until_they_are_accepted() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        // None is accepted yet.
        let connect = |_| std::net::TcpStream::connect_timeout(&address, Duration::from_secs(1));
        let waiting: io::Result<Vec<_>> = (0..300).map(connect).collect();
        assert_eq!(waiting.unwrap().len(), 300);
    }
}
