//! `navlocks serve`.

pub(crate) mod settings;
mod supervisor;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use clap::{Args, ValueEnum};
use navlocks_dashboard::Dashboard;
use navlocks_server::{
    Access, Address, Config, DeadlockPolicy, Limits, Service, SharedOrigins, SharedSocket, TlsFiles,
};
use rustix::fs::Mode;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::supervisor::Supervisor;
use super::joining::Joining;
use crate::command::duration;
use crate::exit::{Exit, Failure};
use crate::printer;
use crate::service_dir::{self, ServiceDir};
use crate::system;

/// The variable with access tokens. Arguments can be read by every user of the machine.
const TOKEN_VARIABLE: &str = "NAVLOCKS_TOKEN";

/// The variable with the level of the log.
const LOG_VARIABLE: &str = "NAVLOCKS_LOG";

/// Serve locks to other processes and machines
///
/// Listens on the user's own Unix socket and on the addresses of --listen. Prints one line to
/// standard output when it listens, a line for each address of the dashboard, and its log to
/// standard error. SIGTERM and SIGINT end it in good order. SIGHUP makes it read its token files
/// and its certificate again, so a service goes on when its terminal is closed.
///
/// Each option is also a setting of the file of --config and a variable: --lease-max 30s is
/// lease-max = "30s" in the file, and NAVLOCKS_LEASE_MAX=30s. Arguments have precedence over
/// variables, and variables over the file. Several values of one option are a list in the file, and
/// have spaces between them in a variable.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// A file with settings in TOML [default: the variable NAVLOCKS_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the settings and the files that they name, and serve nothing
    #[arg(long)]
    check: bool,
    /// The Unix socket to listen on [default: the user's own]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Listen on no Unix socket
    #[arg(long, conflicts_with = "socket")]
    no_socket: bool,
    /// Let the users of this group in over the Unix socket: a name or a number
    #[arg(long, value_name = "GROUP", value_parser = group)]
    socket_group: Option<u32>,
    /// The mode of the Unix socket, in octal: 0660 lets its group in, 0666 every user
    /// [default: 0600, and 0660 with --socket-group]
    #[arg(long, value_name = "MODE", value_parser = socket_mode)]
    socket_mode: Option<u32>,
    /// Give each user a lock space apart over the Unix socket, as a tenant such as uid:1000
    #[arg(long)]
    tenant_by_user: bool,
    /// An address to listen on, such as 127.0.0.1:7400 or localhost:7400; others than loopback need
    /// --token-file and --tls-cert
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Vec<SocketAddr>,
    /// The folder of the state that outlives the service [default: the folder of the socket, in
    /// /var/tmp for the user's own; without a socket $XDG_STATE_HOME/navlocks or
    /// ~/.local/state/navlocks]
    #[arg(long, value_name = "FOLDER")]
    state_dir: Option<PathBuf>,
    /// Grant locks at once although the state folder has no record of an earlier service; without
    /// this a service over TCP waits for --lease-max then, because clients may still hold locks
    #[arg(long)]
    fresh: bool,
    /// A file with access tokens for TCP, one on a line, as TOKEN or TENANT:TOKEN [default: the
    /// variable NAVLOCKS_TOKEN]
    #[arg(long, value_name = "FILE", env = "NAVLOCKS_TOKEN_FILE", hide_env_values = true)]
    token_file: Option<PathBuf>,
    /// The certificate for TCP, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A web origin whose pages may use the service, such as https://shop.example
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// A file with such origins, one on a line; it is read again when it changes
    #[arg(long, value_name = "FILE")]
    origins_file: Option<PathBuf>,
    /// Serve a dashboard at / of the addresses to listen on, under the same access rules as locks
    #[arg(long)]
    dashboard: bool,
    /// Let operators release and steal locks and end sessions from the dashboard
    #[arg(long, requires = "dashboard", requires = "operator_token_file")]
    dashboard_actions: bool,
    /// A file with tokens of operators, one on a line, as NAME:TOKEN; they see all tenants in the
    /// dashboard
    #[arg(long, value_name = "FILE", env = "NAVLOCKS_OPERATOR_TOKEN_FILE", hide_env_values = true)]
    operator_token_file: Option<PathBuf>,
    /// A file with tokens that read /metrics and nothing else, one on a line, as TOKEN or
    /// NAME:TOKEN; operators read it too, and tenants their own numbers
    #[arg(long, value_name = "FILE")]
    metrics_token_file: Option<PathBuf>,
    /// A name of this service, for browsers and for metrics; addresses in numbers and localhost are
    /// known
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Web origins whose pages may use the service and share their locks, such as
    /// https://shop.example,https://m.shop.example; with the word programs, also with programs
    #[arg(long, value_name = "ORIGIN,ORIGIN", value_parser = SharedOrigins::parse)]
    share_origins: Vec<SharedOrigins>,
    /// How to treat a request that would close a cycle of clients that wait for each other
    #[arg(long, value_enum, default_value_t = Deadlocks::Ignore)]
    deadlocks: Deadlocks,
    /// How long a session over TCP lives without a message, unless its client asks for another
    /// lease [default: 10s, and 30s in a cluster]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    lease: Option<Duration>,
    /// The shortest lease that a client can ask for
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration::parse)]
    lease_min: Duration,
    /// The longest lease that a client can ask for, and the longest wait after a crash
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration::parse)]
    lease_max: Duration,
    /// The most connections at a time
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().connections_max)]
    connections_max: usize,
    /// The most requests of one session, held and pending together
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().requests_per_session_max)]
    requests_per_session_max: usize,
    /// The most requests of one partition, held and pending together
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().requests_per_partition_max)]
    requests_per_partition_max: usize,
    /// End when no client was connected for so long
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    idle_exit: Option<Duration>,
    /// The format of the log; its level is in the variable NAVLOCKS_LOG, such as warn or debug
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    #[command(flatten)]
    joining: Joining,
}

/// A policy for deadlocks.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Deadlocks {
    /// Do nothing; a query shows them
    Ignore,
    /// Send an event to subscribers
    Report,
    /// Refuse the request
    Refuse,
}

/// A format of the log.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object on a line
    Json,
}

impl Serve {
    pub(crate) async fn perform(mut self) -> Result<(), Failure> {
        self.log();
        raise_descriptor_limit();
        // The files of a service are private to its user under any umask.
        rustix::process::umask(Mode::RWXG | Mode::RWXO);
        let (joining, check) = (std::mem::take(&mut self.joining), self.check);
        let chosen = self.lease;
        let lease = chosen.unwrap_or_else(|| joining.lease().min(self.lease_max));
        self.lease = Some(lease);
        // A service that ends when it is idle leaves its place to others.
        let stays = self.idle_exit.is_none();
        let lease_min = joining.lease_min(self.lease_min).min(lease);
        if let Some(chosen) = chosen.filter(|_| lease_min < self.lease_min) {
            let (chosen, min) = (duration::say(chosen), duration::say(self.lease_min));
            tracing::warn!(
                "--lease {chosen} is below --lease-min {min}, which is {chosen} too now: give --lease-min as well"
            );
        }
        self.lease_min = lease_min;
        let node_roots = joining.node_ca_file.clone();
        let config =
            self.config(joining.is_wanted())?.with(|config| config.node_roots = node_roots);
        if check {
            joining.check(lease)?;
            Service::check(&config).map_err(|error| no_start(&error))?;
            return printer::print("the settings are right\n");
        }
        let system = |error: io::Error| Failure::new(Exit::System, error.to_string());
        // Installed before a client can connect, so that an early signal is not lost.
        let mut terminate = signal(SignalKind::terminate()).map_err(system)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(system)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(system)?;
        let tls = config.tls.is_some();
        let page = config.dashboard.then(|| config.hosts.first().cloned());
        let service = Service::bind(config).await.map_err(|error| no_start(&error))?;
        let mut service = service.with_dashboard(Dashboard::default());
        let place = ServiceDir::of_user()
            .ok()
            .filter(|place| service.addresses().contains(&Address::Unix(place.socket())));
        if let (Some(place), true) = (place, stays) {
            place.note_serve();
        }
        let addresses = service.addresses().iter().map(|address| url(address, tls));
        let addresses: Vec<String> = addresses.collect();
        if joining.is_wanted() {
            let advertise = joining.advertised(&addresses)?;
            let node = joining.join(advertise, lease, service.seats()).await?;
            service = service.into_node(node).map_err(|error| no_start(&error))?;
        }
        let pages = page.iter().flat_map(|host| pages(&service, host.as_deref(), tls));
        let pages: String = pages.map(|page| format!("dashboard at {page}\n")).collect();
        if page.is_some() && pages.is_empty() {
            tracing::warn!("--dashboard has no address for a browser without --listen");
        }
        printer::print(&format!("listening on {}\n{pages}", addresses.join(" ")))?;
        let (reload, unready) = (service.reload(), service.unready());
        let told = async move {
            let supervisor = Supervisor::of_environment();
            let mut attended = pin!(supervisor.attend(unready));
            let signal = loop {
                tokio::select! {
                    () = &mut attended => {}
                    _ = terminate.recv() => break "SIGTERM",
                    _ = interrupt.recv() => break "SIGINT",
                    _ = hangup.recv() => {
                        tracing::info!("SIGHUP");
                        reload();
                    }
                }
            };
            tracing::info!("{signal}");
            supervisor.stopping();
        };
        let ended = service.run(told).await;
        ended.map_err(|error| Failure::new(Exit::Service, error.to_string()))
    }

    /// Logs to standard error. A service goes on when its log cannot be written, as on a full disk.
    fn log(&self) {
        let level = std::env::var(LOG_VARIABLE).ok().and_then(|text| text.parse().ok());
        let builder = tracing_subscriber::fmt()
            .with_writer(io::stderr)
            .with_ansi(false)
            .with_target(false)
            .log_internal_errors(false)
            .with_max_level(Level::TRACE);
        let filter = level.unwrap_or_else(|| Targets::new().with_default(Level::INFO));
        let _is_set_already = match self.log_format {
            LogFormat::Text => builder.finish().with(filter).try_init(),
            LogFormat::Json => builder.json().finish().with(filter).try_init(),
        };
    }

    /// Returns the permissions of a socket for several users, if it is for more than one.
    fn shared_socket(&self) -> Option<SharedSocket> {
        let mode = self
            .socket_mode
            .unwrap_or_else(|| if self.socket_group.is_some() { 0o660 } else { 0o600 });
        (mode != 0o600).then_some(SharedSocket { group: self.socket_group, mode })
    }

    fn config(self, is_node: bool) -> Result<Config, Failure> {
        // Sockets are for this process, not for an ancestor of it.
        let me = std::process::id().to_string();
        let handed_over = std::env::var("LISTEN_PID").is_ok_and(|pid| pid == me);
        let shared_socket = self.shared_socket();
        let unix = match self.socket {
            Some(path) => Some(path),
            None if self.no_socket || handed_over || is_node => None,
            None => Some(ServiceDir::of_user()?.socket()),
        };
        let lease = self.lease.unwrap_or_else(|| Limits::default().lease_default);
        if !(self.lease_min <= lease && lease <= self.lease_max) {
            let text = "--lease must be neither below --lease-min nor above --lease-max";
            return Err(Failure::new(Exit::Usage, text));
        }
        let state_dir = match self.state_dir {
            // The cluster keeps what must outlive a node.
            _ if is_node => None,
            Some(folder) => Some(folder),
            None => {
                let inherited = if handed_over { system::inherited_socket() } else { None };
                let folder = service_dir::state_folder(unix.as_deref().or(inherited.as_deref()))?;
                // Others can enter the folder of a shared socket, and no folder of a state.
                let folder = if shared_socket.is_some() { folder.join("state") } else { folder };
                if !self.check && shared_socket.is_none() {
                    service_dir::prepare(&folder)?;
                }
                Some(folder)
            }
        };
        let tls = self.tls_cert.zip(self.tls_key);
        let access = access(self.token_file, self.operator_token_file, self.metrics_token_file)?;
        let limits = Limits::default().with(|limits| {
            limits.lease_min = self.lease_min;
            limits.lease_max = self.lease_max;
            limits.lease_default = lease;
            limits.connections_max = self.connections_max;
            limits.requests_per_session_max = self.requests_per_session_max;
            limits.requests_per_partition_max = self.requests_per_partition_max;
        });
        Ok(Config::default().with(|config| {
            config.unix = unix;
            config.shared_socket = shared_socket;
            config.tenant_by_user = self.tenant_by_user;
            config.tcp = self.listen;
            config.inherit = handed_over;
            config.state_dir = state_dir;
            config.fresh = self.fresh;
            config.access = access;
            config.dashboard = self.dashboard;
            config.dashboard_actions = self.dashboard_actions;
            config.hosts = self.host;
            config.tls = tls.map(|(certificate, key)| TlsFiles { certificate, key });
            config.allow_origins = self.allow_origin;
            config.origins_file = self.origins_file;
            config.shared_origins = self.share_origins;
            config.deadlocks = match self.deadlocks {
                Deadlocks::Ignore => DeadlockPolicy::Ignore,
                Deadlocks::Report => DeadlockPolicy::Report,
                Deadlocks::Refuse => DeadlockPolicy::Refuse,
            };
            config.limits = limits;
            config.idle_exit = self.idle_exit;
        }))
    }
}

/// Returns the number of a group.
fn group(text: &str) -> Result<u32, String> {
    let found = text.parse().ok().or_else(|| system::group(text));
    found.ok_or_else(|| format!("the machine has no group '{text}': name one of getent group"))
}

/// Returns the mode of a socket that its own user can use.
fn socket_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok();
    mode.filter(|mode| mode & !0o066 == 0o600)
        .ok_or_else(|| format!("'{text}' is no mode of a socket: give 0600, 0660 or 0666"))
}

fn access(
    file: Option<PathBuf>,
    operators: Option<PathBuf>,
    scrapers: Option<PathBuf>,
) -> Result<Access, Failure> {
    let read = |path: &PathBuf| {
        Access::from_file(path).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
    };
    let mut access = tenants(file)?;
    if let Some(path) = &operators {
        access = access.with_operators(read(path)?);
    }
    if let Some(path) = &scrapers {
        access = access.with_scrapers(read(path)?);
    }
    Ok(access)
}

fn tenants(file: Option<PathBuf>) -> Result<Access, Failure> {
    let usage = |error: io::Error| Failure::new(Exit::Usage, error.to_string());
    if let Some(path) = file {
        return Access::from_file(&path).map_err(usage);
    }
    match std::env::var(TOKEN_VARIABLE) {
        Ok(text) if !text.is_empty() => {
            let named = |error| usage(io::Error::other(format!("{TOKEN_VARIABLE}: {error}")));
            Access::from_text(&text).map_err(named)
        }
        _ => Ok(Access::default()),
    }
}

/// Parses an address to listen on. A name such as localhost is looked up.
fn address(text: &str) -> Result<SocketAddr, String> {
    let wrong =
        |why: &dyn std::fmt::Display| format!("write HOST:PORT, such as 127.0.0.1:7400 ({why})");
    let found: Vec<SocketAddr> = text.to_socket_addrs().map_err(|error| wrong(&error))?.collect();
    let older = found.iter().find(|address| address.is_ipv4()).or_else(|| found.first());
    older.copied().ok_or_else(|| wrong(&"the name has no address"))
}

fn no_start(error: &io::Error) -> Failure {
    let exit = match error.kind() {
        io::ErrorKind::InvalidInput => Exit::Usage,
        io::ErrorKind::PermissionDenied => Exit::Folder,
        io::ErrorKind::AddrInUse | io::ErrorKind::ResourceBusy => Exit::Busy,
        _ => Exit::NoStart,
    };
    Failure::new(exit, error.to_string())
}

fn url(address: &Address, tls: bool) -> String {
    match address {
        Address::Unix(path) => format!("unix:{}", path.display()),
        Address::Tcp(address) if tls => format!("wss://{address}"),
        Address::Tcp(address) => format!("ws://{address}"),
    }
}

/// Returns the addresses of the dashboard for a browser, by the name of the service if it has one.
fn pages(service: &Service, host: Option<&str>, tls: bool) -> Vec<String> {
    let scheme = if tls { "https" } else { "http" };
    let page = |address: &Address| match (address, host) {
        (Address::Unix(_), _) => None,
        (Address::Tcp(address), None) => Some(format!("{scheme}://{address}/")),
        (Address::Tcp(address), Some(host)) => {
            Some(format!("{scheme}://{host}:{}/", address.port()))
        }
    };
    service.addresses().iter().filter_map(page).collect()
}

/// Raises the limit of open files: the usual soft limit is for programs with few connections.
fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _as_it_was = setrlimit(Resource::Nofile, limit);
}
