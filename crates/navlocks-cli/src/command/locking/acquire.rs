//! A request from a command line, and the wait for its lock.

use std::ffi::OsString;
use std::future::{IntoFuture, poll_fn};
use std::io::IsTerminal;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use clap::Args;
use navlocks::{
    Limit, Lock, Locks, Mode, RequestError, RequestErrorKind, RequestId, RequestInfo, Scope,
    Snapshot,
};
use navlocks_wire::{self as wire, Names};

use crate::command::target::{self, Stay, Target};
use crate::command::{duration, names, short};
use crate::exit::{Exit, Failure};
use crate::printer;
use crate::run::{Signals, Waiting, who};

/// The pause before a new session with a service that was out of reach.
const RESTART_PAUSE: Duration = Duration::from_millis(50);

/// The bounds of the time in which the service must answer before a request times out; it is half
/// of the timeout.
const ANSWER_MIN: Duration = Duration::from_millis(250);
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// The names and options of a request.
#[derive(Debug, Args)]
pub(crate) struct Acquire {
    /// The names to lock
    #[arg(value_name = "NAME")]
    names: Vec<OsString>,
    /// Share the lock with other requests that do
    #[arg(short, long)]
    shared: bool,
    /// Share the lock with no other request; that is the default
    #[arg(short = 'x', short_alias = 'e', long, conflicts_with = "shared")]
    exclusive: bool,
    /// Share the lock, while no more than NUMBER hold it, this one included: a semaphore
    #[arg(long, value_name = "NUMBER", value_parser = limit, allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["shared", "exclusive"])]
    limit: Option<Mode>,
    /// Do not wait: end with the conflict's exit code if the lock is not free;
    /// also --nonblock, --nb
    #[arg(short = 'n', long, aliases = ["nonblock", "nb"])]
    #[arg(conflicts_with_all = ["timeout", "steal"])]
    if_available: bool,
    /// Wait no longer than this: 10 or 10s, 500ms, 5m, 1h; also --wait
    #[arg(short = 'w', long, alias = "wait", value_name = "DURATION")]
    #[arg(value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// Hold the lock no longer than this: then it is lost
    #[arg(long, value_name = "DURATION", value_parser = max_hold, allow_negative_numbers = true)]
    max_hold: Option<Duration>,
    /// Steal the lock from its holder, which is told
    #[arg(long, conflicts_with = "shared")]
    steal: bool,
    /// The name of the holder for other users [default: that of the program]
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) tag: Option<String>,
    /// The exit code when the lock is not free in time
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = Exit::Conflict.code())]
    conflict_exit_code: u8,
    /// Do not print the holder and the queue while waiting
    #[arg(short, long)]
    quiet: bool,
    /// Print how long the wait was
    #[arg(long, conflicts_with = "quiet")]
    verbose: bool,
}

impl Acquire {
    /// Returns the scope of the names.
    pub(crate) fn scope(&self) -> Result<Scope, Failure> {
        names::scope(&self.names)
    }

    /// Waits for the lock. If the user's own service is out of reach for long, a new session shows
    /// the cause.
    pub(crate) async fn acquire(
        &self,
        target: &Target,
        scope: &Scope,
    ) -> Result<(Lock, Signals), Failure> {
        let since = Instant::now();
        let until = self.timeout.map(|timeout| since + timeout);
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let asked = left.filter(|left| !left.is_zero());
            let limit = asked.map_or(target.answer_timeout, |left| left.max(ANSWER_MIN));
            let limit = limit.min(target.answer_timeout);
            #[allow(clippy::async_yields_async, reason = "it is awaited after the greeting")]
            let early = async |locks: &Locks| {
                let mut requested = self.request(locks, scope, left, target.outer());
                requested.begin().await;
                requested
            };
            let (locks, requested) = target.connect_within(limit, Stay::Long, early).await?;
            let wait = self.wait(target, &locks, scope, requested, left);
            let (waited, signals) = attended(target, &locks, wait).await?;
            match waited {
                Err(Missed::Request(error))
                    if error == RequestErrorKind::Unreachable && target.place()?.is_some() =>
                {
                    tokio::time::sleep(RESTART_PAUSE).await;
                }
                Err(Missed::Request(error)) => return Err(no_lock(&error)),
                Err(Missed::NotFree(now)) => {
                    return Err(self.conflict(&not_free(scope, self.timeout, now)));
                }
                Err(Missed::Failed(failure)) => return Err(failure),
                Ok(lock) => {
                    if self.verbose {
                        let (scope, wait) = (short(scope), duration::say(since.elapsed()));
                        printer::tell(&format!("'{scope}' is held, after {wait}"));
                    }
                    return Ok((lock, signals));
                }
            }
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.limit.unwrap_or(if self.shared { Mode::Shared } else { Mode::Exclusive })
    }

    /// Returns true if the request does not wait.
    fn tries_once(&self, timeout: Option<Duration>) -> bool {
        self.if_available || timeout == Some(Duration::ZERO)
    }

    fn request(
        &self,
        locks: &Locks,
        scope: &Scope,
        timeout: Option<Duration>,
        outer: Option<RequestId>,
    ) -> Requested {
        let mut request =
            locks.request(scope).tag(self.tag.clone().unwrap_or_default()).mode(self.mode());
        if let Some(outer) = outer {
            request = request.within(outer);
        }
        if let Some(time) = self.max_hold {
            request = request.max_hold(time);
        }
        if let Ok(traceparent) = std::env::var("TRACEPARENT") {
            request = request.traceparent(traceparent);
        }
        if self.tries_once(timeout) {
            return Requested::new(request.if_available().into_future());
        }
        if self.steal {
            request = request.steal();
        }
        if let Some(timeout) = timeout {
            request = request.timeout(timeout);
        }
        let request = request.into_future();
        Requested::new(async { request.await.map(Some) })
    }

    async fn wait(
        &self,
        target: &Target,
        locks: &Locks,
        scope: &Scope,
        mut request: Requested,
        timeout: Option<Duration>,
    ) -> Result<Lock, Missed> {
        if self.tries_once(timeout) {
            let limit = target.answer_timeout;
            let answer = tokio::time::timeout(limit, &mut request).await;
            let Ok(answer) = answer else {
                // A service that waits for an earlier session does not answer, but knows a reason.
                return Err(match tokio::time::timeout(ANSWER_MAX, state(locks)).await {
                    Ok(now) => Missed::NotFree(now),
                    Err(_) => Missed::Failed(target.silent(limit)),
                });
            };
            let Some(lock) = answer? else {
                let now = tokio::time::timeout(limit, state(locks)).await;
                return Err(Missed::NotFree(now.ok().flatten()));
            };
            return Ok(lock);
        }
        let mut waiting = Waiting::new(locks, scope, self.mode(), std::io::stderr().is_terminal());
        let mut told = pin!(async {
            if self.quiet { std::future::pending().await } else { waiting.tell().await }
        });
        // The service is asked for the holder shortly before the timeout. An answer tells a lock
        // that is not free from a service that hangs.
        let answered_within = timeout.map(|timeout| (timeout / 2).clamp(ANSWER_MIN, ANSWER_MAX));
        let mut asked = pin!(async {
            let (Some(timeout), Some(within)) = (timeout, answered_within) else {
                return std::future::pending().await;
            };
            tokio::time::sleep(timeout.saturating_sub(within)).await;
            tokio::time::timeout(within, state(locks)).await
        });
        let since = Instant::now();
        let is_over = |error: &RequestError| match error.kind() {
            RequestErrorKind::TimedOut { .. } => true,
            RequestErrorKind::Unreachable => timeout.is_some_and(|time| since.elapsed() >= time),
            _ => false,
        };
        let mut answer = None;
        loop {
            tokio::select! {
                biased;
                lock = &mut request => match lock {
                    Ok(Some(lock)) => return Ok(lock),
                    Ok(None) => break,
                    Err(error) if is_over(&error) => break,
                    Err(error) => return Err(error.into()),
                },
                answered = &mut asked, if answer.is_none() => answer = Some(answered),
                never = &mut told => match never {},
            }
        }
        let answer = match answer {
            Some(answer) => answer,
            None => asked.await,
        };
        match answer {
            Ok(answer) => Err(Missed::NotFree(answer)),
            Err(_) => Err(Missed::Failed(target.silent(answered_within.unwrap_or_default()))),
        }
    }

    fn conflict(&self, message: &str) -> Failure {
        let message = if self.quiet { String::new() } else { message.to_owned() };
        Failure { code: self.conflict_exit_code, message }
    }
}

/// Waits, and disconnects from a remote service if a signal ends this command: its request
/// would stay in the queue for its lease. Returns the signals.
async fn attended<T>(
    target: &Target,
    locks: &Locks,
    wait: impl Future<Output = T>,
) -> Result<(T, Signals), Failure> {
    if !target.is_remote() {
        return Ok((wait.await, Signals::default()));
    }
    let mut signals = Signals::ending()?;
    let waited = tokio::select! {
        biased;
        caught = signals.next() => {
            Target::finish(locks.clone()).await;
            crate::system::die_of(caught)
        }
        waited = wait => waited,
    };
    Ok((waited, signals))
}

fn limit(text: &str) -> Result<Mode, String> {
    let mode = text.parse().ok().and_then(|holders| Mode::limited(holders).ok());
    mode.ok_or_else(|| format!("it is a number of holders from 1 to {}", Limit::MAX))
}

fn max_hold(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        time if time < Duration::from_millis(1) => {
            Err("a maximum hold is a millisecond or more".to_owned())
        }
        time => Ok(time),
    }
}

/// A request that may be sent before its answer is awaited.
struct Requested {
    request: Pin<Box<dyn Future<Output = Result<Option<Lock>, RequestError>>>>,
    answer: Option<Result<Option<Lock>, RequestError>>,
}

impl Requested {
    fn new(request: impl Future<Output = Result<Option<Lock>, RequestError>> + 'static) -> Self {
        Self { request: Box::pin(request), answer: None }
    }

    /// Sends the request, without waiting for its answer.
    async fn begin(&mut self) {
        let polled = poll_fn(|cx| Poll::Ready(self.request.as_mut().poll(cx))).await;
        if let Poll::Ready(answer) = polled {
            self.answer = Some(answer);
        }
    }
}

impl Future for Requested {
    type Output = Result<Option<Lock>, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => self.request.as_mut().poll(cx),
        }
    }
}

/// The reason why there is no lock.
enum Missed {
    Request(RequestError),
    /// Other requests hold it or wait for it, or no lock is granted. With the snapshot and the
    /// reason, where the service answered.
    NotFree(Option<(Snapshot, Option<String>)>),
    Failed(Failure),
}

impl From<RequestError> for Missed {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

/// Asks for a snapshot, and for the reason why a request waits without a holder.
async fn state(locks: &Locks) -> Option<(Snapshot, Option<String>)> {
    let now = locks.query().await.ok()?;
    let reason = target::reason(locks).await;
    Some((now, reason))
}

/// Returns a sentence about a lock that was not free, with its holders.
fn not_free(
    scope: &Scope,
    timeout: Option<Duration>,
    now: Option<(Snapshot, Option<String>)>,
) -> String {
    let shown = short(scope);
    let mut text = match timeout {
        Some(timeout) => format!("'{shown}' was not free within {}", duration::say(timeout)),
        None => format!("'{shown}' is not free"),
    };
    let Some((now, reason)) = now else { return text };
    let meets = |info: &&RequestInfo| scope.names().iter().any(|name| info.scope.contains(name));
    let holders: Vec<String> = now.held.iter().filter(meets).map(held_by).collect();
    if !holders.is_empty() {
        text.push_str(&format!(": held by {}", holders.join(", ")));
    } else if let Some(reason) = reason {
        text.push_str(&format!(": {reason}"));
    } else if !now.pending.iter().any(|info| meets(&info)) {
        text.push_str(
            ", although it is not held: it was released just now, or nothing is granted yet after a crash of the service",
        );
    }
    text
}

fn held_by(info: &RequestInfo) -> String {
    format!("{} for {}", who(info), duration::say(info.age))
}

fn no_lock(error: &RequestError) -> Failure {
    let exit = match error.kind() {
        RequestErrorKind::Unreachable | RequestErrorKind::OutcomeUnknown => Exit::Unavailable,
        RequestErrorKind::Refused(_) => Exit::Limit,
        _ => Exit::Withdrawn,
    };
    Failure::new(exit, error.to_string())
}

/// Returns the variables of a program under the lock. One without a value is removed: it may be
/// from a lock around this one.
pub(crate) fn environment(lock: &Lock, target: &Target) -> Vec<(&'static str, Option<String>)> {
    let single = match lock.scope().names() {
        [name] => name.to_str().map(str::to_owned),
        _ => None,
    };
    let mut all = vec![
        ("NAVLOCKS_FENCING_TOKEN", Some(lock.fencing_token().to_string())),
        ("NAVLOCKS_NAMES", Some(wire::write(&Names(lock.scope().clone())))),
        ("NAVLOCKS_NAME", single),
        ("NAVLOCKS_MODE", Some(lock.mode().to_string())),
        (target::OUTER_VARIABLE, target.outer_value(lock)),
    ];
    all.extend(target.variables());
    all
}
