//! The target of a subcommand: its service, and connections to it.

mod missed;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use navlocks::{
    Connect, ConnectError, Lock, Locks, PartitionSnapshot, QueryError, RequestId, Snapshot,
};
use navlocks_wire::RequestKey;

use super::duration;
use super::services::recovery;
use super::views::waits::quoted;
use crate::exit::{Exit, Failure};
use crate::service_dir::{Found, ServiceDir};
use missed::{Missed, leaving, missed};
pub(super) use missed::{silent, unanswered, without_socket};

/// The variable with the access token. Arguments can be read by every user of the machine.
const TOKEN_VARIABLE: &str = "NAVLOCKS_TOKEN";

/// The variable with the lock under which a command runs, and the service of that lock.
pub(super) const OUTER_VARIABLE: &str = "NAVLOCKS_REQUEST";

/// The service of the machine, as the units of systemd have it.
const SYSTEM_URL: &str = "unix:/run/navlocks/socket";

/// Attempts to connect to a service that ends during the handshake, and the pause between them.
const GREETINGS_MAX: u32 = 50;
const GREETING_PAUSE: Duration = Duration::from_millis(20);

/// The longest wait for a disconnect. During a fail-over of a cluster it lasts until the next owner
/// is there: that one grants nothing until every session has claimed or ended.
const LEAVE_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Service")]
pub(super) struct Target {
    /// The service: unix:PATH, ws://HOST:PORT or wss://HOST:PORT [default: the user's own, in the
    /// folder NAVLOCKS_DIR]
    #[arg(long, value_name = "URL", env = "NAVLOCKS_URL", hide_env_values = true)]
    url: Option<String>,
    /// Use the service of the machine, which several users share, at /run/navlocks/socket
    #[arg(long, conflicts_with = "url")]
    system: bool,
    /// A lock space of its own: the same name in another partition is another lock
    #[arg(long, value_name = "NAME", env = "NAVLOCKS_PARTITION", hide_env_values = true)]
    partition: Option<String>,
    /// A file with the access token [default: the variable NAVLOCKS_TOKEN]
    #[arg(long, value_name = "FILE", env = "NAVLOCKS_TOKEN_FILE", hide_env_values = true)]
    token_file: Option<PathBuf>,
    /// Send the token to another machine over ws://, where every router on the way can read it
    #[arg(long)]
    token_in_clear: bool,
    /// A file with the certificates to trust for wss:// [default: those that the system trusts]
    #[arg(long, value_name = "FILE", env = "NAVLOCKS_CA_FILE", hide_env_values = true)]
    ca_file: Option<PathBuf>,
    /// How long the service may take to answer
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        env = "NAVLOCKS_ANSWER_TIMEOUT",
        hide_env_values = true
    )]
    #[arg(value_parser = duration::parse)]
    pub(super) answer_timeout: Duration,
}

/// The fate of a session when the user's own service ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stay {
    /// The session ends with the service.
    Short,
    /// The client starts the service again, and the session goes on.
    Long,
}

impl Target {
    /// Returns the given address; none for the user's own service.
    pub(super) fn url(&self) -> Option<&str> {
        match self.system {
            true => Some(SYSTEM_URL),
            false => self.url.as_deref().filter(|url| !url.is_empty()),
        }
    }

    /// Returns the options that name the same lock space, each after a space.
    pub(super) fn options(&self) -> String {
        let url = self.url().map(|url| format!(" --url {}", quoted(url)));
        let partition = Some(self.partition()).filter(|name| !name.is_empty());
        let partition = partition.map(|name| format!(" --partition {}", quoted(name)));
        url.into_iter().chain(partition).collect()
    }

    /// Returns the place of the user's own service, if that is the target.
    pub(super) fn place(&self) -> Result<Option<ServiceDir>, Failure> {
        if self.url().is_some() { Ok(None) } else { ServiceDir::of_user().map(Some) }
    }

    /// Connects. The user's own service is started if it does not run.
    pub(super) async fn connect(&self) -> Result<Locks, Failure> {
        let (locks, ()) =
            self.connect_within(self.answer_timeout, Stay::Short, async |_| ()).await?;
        Ok(locks)
    }

    /// Connects, to a service that answers within this time. The requests that `early`
    /// makes travel with the greeting.
    pub(super) async fn connect_within<T>(
        &self,
        limit: Duration,
        stay: Stay,
        early: impl AsyncFn(&Locks) -> T,
    ) -> Result<(Locks, T), Failure> {
        let Some(place) = self.place()? else { return self.connect_to_other(limit, &early).await };
        let mut last = None;
        for _ in 0..GREETINGS_MAX {
            match self.try_own(&place, limit, stay, &early).await {
                Ok(connected) => return Ok(connected),
                Err(Missed::Failed(failure)) => return Err(failure),
                Err(Missed::Left(failure)) => last = Some(failure),
                Err(Missed::Absent(_)) => {
                    let starter = place.starter()?;
                    // Another process may have started one before this one got the right.
                    match self.try_own(&place, limit, stay, &early).await {
                        Ok(connected) => return Ok(connected),
                        Err(Missed::Absent(_)) => match starter.start(limit) {
                            Ok(()) => continue,
                            // The other service is about to end, or to make its socket again.
                            Err(failure) if failure.code == Exit::Busy.code() => {
                                last = Some(failure);
                            }
                            Err(failure) => return Err(failure),
                        },
                        Err(Missed::Left(failure) | Missed::Failed(failure)) => {
                            last = Some(failure)
                        }
                    }
                }
            }
            tokio::time::sleep(GREETING_PAUSE).await;
        }
        Err(last.unwrap_or_else(|| leaving(&place)))
    }

    /// Connects. Returns none if the target is the user's own service, and none runs.
    pub(super) async fn connect_if_running(&self) -> Result<Option<Locks>, Failure> {
        let Some(place) = self.place()? else {
            let connected = self.connect_to_other(self.answer_timeout, &async |_: &Locks| ()).await;
            return connected.map(|(locks, ())| Some(locks));
        };
        let mut last = None;
        for _ in 0..GREETINGS_MAX {
            match self
                .try_own(&place, self.answer_timeout, Stay::Short, &async |_: &Locks| ())
                .await
            {
                Ok((locks, ())) => return Ok(Some(locks)),
                Err(Missed::Failed(failure)) => return Err(failure),
                // A service that is about to end, and its successor, may have locks.
                Err(Missed::Left(failure)) => last = Some(failure),
                Err(Missed::Absent(_)) if !place.is_in_use()? => return Ok(None),
                Err(Missed::Absent(_)) => last = Some(without_socket(&place)),
            }
            tokio::time::sleep(GREETING_PAUSE).await;
        }
        Err(last.unwrap_or_else(|| leaving(&place)))
    }

    /// As [`connect_if_running`](Self::connect_if_running), but starts the user's own service if
    /// clients of an earlier one may have locks.
    pub(super) async fn connect_if_used(&self) -> Result<Option<Locks>, Failure> {
        match (self.connect_if_running().await?, self.place()?) {
            (None, Some(place)) if place.has_sessions()? => self.connect().await.map(Some),
            (connected, _) => Ok(connected),
        }
    }

    /// Returns the value of [`OUTER_VARIABLE`] for a command under a lock.
    pub(super) fn outer_value(&self, lock: &Lock) -> Option<String> {
        let request = RequestKey::try_from(lock.request_id()).ok()?;
        Some(format!("{request} {}", self.address()?))
    }

    /// Returns the lock under which this process runs, if it is one of this service.
    pub(super) fn outer(&self) -> Option<RequestId> {
        let variable = std::env::var(OUTER_VARIABLE).ok()?;
        let (request, service) = variable.split_once(' ')?;
        let request: RequestKey = request.parse().ok()?;
        (service == self.address()?).then(|| request.into())
    }

    /// Returns the address of the service for a command in any folder.
    fn address(&self) -> Option<String> {
        match self.url() {
            Some(url) => Some(absolute(url)),
            None => Some(ServiceDir::of_user().ok()?.url()),
        }
    }

    /// Returns the variables by which commands under a lock find the same service.
    pub(super) fn variables(&self) -> [(&'static str, Option<String>); 3] {
        let path = |file: &Option<PathBuf>| {
            std::path::absolute(file.as_deref()?).ok()?.into_os_string().into_string().ok()
        };
        [
            ("NAVLOCKS_URL", self.url().map(absolute)),
            ("NAVLOCKS_TOKEN_FILE", path(&self.token_file)),
            ("NAVLOCKS_CA_FILE", path(&self.ca_file)),
        ]
    }

    /// Asks for a snapshot.
    pub(super) async fn query(&self, locks: &Locks) -> Result<Snapshot, Failure> {
        self.answer(locks.query()).await
    }

    /// Asks for a snapshot, and for the reason if no lock is granted.
    pub(super) async fn query_with_reason(
        &self,
        locks: &Locks,
    ) -> Result<(Snapshot, Option<String>), Failure> {
        let answers = async {
            let now = locks.query().await?;
            let reason = withheld(locks).await;
            Ok((now, reason))
        };
        self.answer(answers).await
    }

    /// Asks for the reason if no lock is granted.
    pub(super) async fn reason(&self, locks: &Locks) -> Result<Option<String>, Failure> {
        self.answer(async { Ok(withheld(locks).await) }).await
    }

    /// Asks for a snapshot of every partition, and for the reason if no lock is granted.
    pub(super) async fn query_all(
        &self,
        locks: &Locks,
    ) -> Result<(Vec<PartitionSnapshot>, Option<String>), Failure> {
        let answers = async { Ok((locks.query_all().await?, withheld(locks).await)) };
        self.answer(answers).await
    }

    /// Returns true if the service is behind a network: sessions outlive this command there.
    pub(super) fn is_remote(&self) -> bool {
        self.url().is_some_and(|url| !url.starts_with("unix:"))
    }

    /// Waits for an answer within the answer timeout.
    pub(super) async fn answer<T>(
        &self,
        question: impl Future<Output = Result<T, QueryError>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(self.answer_timeout, question).await {
            Ok(answer) => answer.map_err(unanswered),
            Err(_) => Err(self.silent(self.answer_timeout)),
        }
    }

    /// Returns the failure of a service that does not answer in time.
    pub(super) fn silent(&self, limit: Duration) -> Failure {
        let url = self.url().map(str::to_owned);
        let url = url.or_else(|| Some(ServiceDir::of_user().ok()?.url())).unwrap_or_default();
        silent(&url, limit)
    }

    async fn connect_to_other<T>(
        &self,
        limit: Duration,
        early: &impl AsyncFn(&Locks) -> T,
    ) -> Result<(Locks, T), Failure> {
        let url = self.url().unwrap_or_default();
        let mut connect = Locks::connect(url).partition(self.partition()).unreachable_after(None);
        if let Some(token) = self.token()? {
            connect = connect.token(token);
        }
        if self.token_in_clear {
            connect = connect.allow_token_in_clear();
        }
        if let Some(file) = &self.ca_file {
            connect = connect.root_certificates(read(file)?);
        }
        let Ok(connected) = tokio::time::timeout(limit, greet(connect, early)).await else {
            return Err(silent(url, limit));
        };
        connected.map_err(|error| match (error, &self.ca_file) {
            (error @ ConnectError::BadCertificate(_), Some(file)) => {
                Failure::new(Exit::Usage, format!("cannot use {}: {error}", file.display()))
            }
            (error, _) => match missed(url, error) {
                Missed::Absent(failure) | Missed::Left(failure) | Missed::Failed(failure) => {
                    failure
                }
            },
        })
    }

    /// Tries once to reach the user's own service.
    async fn try_own<T>(
        &self,
        place: &ServiceDir,
        limit: Duration,
        stay: Stay,
        early: &impl AsyncFn(&Locks) -> T,
    ) -> Result<(Locks, T), Missed> {
        let url = place.url();
        // Another user's service might listen in a folder that others can write to.
        if place.look().map_err(Missed::Failed)? == Found::Nothing {
            let message = format!("no service runs: there is no {}", place.folder().display());
            return Err(Missed::Absent(Failure::new(Exit::Unavailable, message)));
        }
        let mut connect = Locks::connect(&url).partition(self.partition());
        connect = match stay {
            Stay::Short => connect.unreachable_after(Duration::ZERO),
            Stay::Long => {
                let place = place.clone();
                let start = move || place.start_again().map_err(std::io::Error::other);
                connect.unreachable_after(self.answer_timeout).restart_with(start)
            }
        };
        // A request may be pending without end; questions have a time limit of their own.
        let connect = connect.answer_timeout(None);
        match tokio::time::timeout(limit, greet(connect, early)).await {
            Ok(connected) => connected.map_err(|error| missed(&url, error)),
            Err(_) => Err(Missed::Failed(silent(&url, limit))),
        }
    }

    fn partition(&self) -> &str {
        self.partition.as_deref().unwrap_or_default()
    }

    fn token(&self) -> Result<Option<String>, Failure> {
        let text = match &self.token_file {
            Some(file) => {
                let text = navlocks_server::read_secret(file);
                text.map_err(|error| Failure::new(Exit::Usage, error.to_string()))?
            }
            None => std::env::var(TOKEN_VARIABLE).unwrap_or_default(),
        };
        let token = text.trim();
        Ok((!token.is_empty()).then(|| token.to_owned()))
    }

    /// Disconnects, if there is a connection.
    pub(super) async fn finish_all(locks: Option<Locks>) {
        if let Some(locks) = locks {
            Self::finish(locks).await;
        }
    }

    /// Disconnects, so that the service ends the session before this process ends.
    pub(super) async fn finish(locks: Locks) {
        let _late = tokio::time::timeout(LEAVE_MAX, locks.disconnect()).await;
    }
}

/// Makes a connection. The requests that `early` makes travel with the greeting.
async fn greet<T>(
    connect: Connect,
    early: &impl AsyncFn(&Locks) -> T,
) -> Result<(Locks, T), ConnectError> {
    let (locks, greeting) = connect.open().await?;
    let requested = early(&locks).await;
    greeting.await?;
    Ok((locks, requested))
}

/// Returns the address of a service for a command in any folder.
fn absolute(url: &str) -> String {
    let path = url.strip_prefix("unix:").map(|path| path.strip_prefix("//").unwrap_or(path));
    match path.map(std::path::absolute) {
        Some(Ok(path)) => format!("unix:{}", path.display()),
        _ => url.to_owned(),
    }
}

/// Returns the reason why a request may wait without a holder: a session of an earlier service, or
/// the service's own words.
pub(super) async fn reason(locks: &Locks) -> Option<String> {
    match locks.unclaimed_sessions().await.ok()?.first() {
        Some(session) => Some(recovery::sentence(session)),
        None => withheld(locks).await,
    }
}

/// Returns the reason of a service that grants no lock yet, in its own words.
async fn withheld(locks: &Locks) -> Option<String> {
    match locks.place().await {
        Err(QueryError::Refused(reason)) => Some(reason.to_string()),
        _ => None,
    }
}

fn read(file: &PathBuf) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read {}: {error}", file.display()))
    })
}
