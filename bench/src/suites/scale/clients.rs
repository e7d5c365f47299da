//! The clients of a trial: processes with many sessions each, because open files are limited.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use navlocks::{Connection, Lock, Locks};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The first argument of a process of clients.
pub(crate) const WORD: &str = "scale-clients";

/// Sessions of one process.
pub(super) const SESSIONS_MAX: usize = 5000;

/// Sessions that connect at a time.
const CONNECTING_MAX: usize = 32;

/// For a grant after a node was killed.
const GRANT_MAX: Duration = Duration::from_secs(120);

/// The state of the clients after a trial.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// The slowest grant of a name that was free.
    pub(super) slowest: Duration,
    pub(super) failed: usize,
    pub(super) lost: usize,
    /// Sessions without a connection.
    pub(super) silent: usize,
}

/// A process of clients.
pub(super) struct Clients {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Clients {
    /// Starts a process with these sessions, spread over so many partitions.
    pub(super) fn start(
        url: &str,
        (first, count): (usize, usize),
        partitions: usize,
    ) -> io::Result<Self> {
        let numbers = [first, count, partitions].map(|number| number.to_string());
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(WORD).arg(url).args(numbers);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let taken = child.stdin.take().zip(child.stdout.take());
        let (input, output) = taken.ok_or_else(|| io::Error::other("no pipes"))?;
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Sends a word, after which the process does its next step.
    pub(super) fn tell(&mut self, word: &str) -> io::Result<()> {
        writeln!(self.input, "{word}")
    }

    /// Waits for the end of a step. Returns its figures.
    pub(super) fn hear(&mut self) -> io::Result<Vec<u64>> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(io::Error::other("the clients ended"));
        }
        line.split_whitespace().map(|word| word.parse().map_err(io::Error::other)).collect()
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// Adds up what the processes say after a word.
pub(super) fn report(processes: &mut [Clients], word: &str) -> io::Result<Report> {
    processes.iter_mut().try_for_each(|process| process.tell(word))?;
    let mut report = Report::default();
    for process in processes {
        let figures = process.hear()?;
        let [slowest, failed, lost, silent] = figures[..] else {
            return Err(io::Error::other("not a report of clients"));
        };
        report.slowest = report.slowest.max(Duration::from_nanos(slowest));
        report.failed += failed as usize;
        report.lost += lost as usize;
        report.silent += silent as usize;
    }
    Ok(report)
}

/// Runs a process of clients, by the arguments after its word.
///
/// # Errors
/// A session cannot connect or get its lock, or the arguments are wrong.
pub(crate) fn serve(mut words: impl Iterator<Item = String>) -> io::Result<()> {
    let url = words.next().ok_or(io::ErrorKind::InvalidInput)?;
    let numbers: Result<Vec<usize>, _> = words.map(|word| word.parse()).collect();
    let numbers = numbers.map_err(io::Error::other)?;
    let [first, count, partitions] = numbers[..] else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    servers::raise_open_files_limit();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let sessions = runtime.block_on(connect(url, first..first + count, partitions))?;
    println!("{count}");
    let mut slowest = (Duration::ZERO, 0);
    for word in io::stdin().lines() {
        if word? == "killed" {
            // One session of each partition.
            let probes = sessions.iter().filter(|it| it.number < partitions);
            slowest = runtime.block_on(probe(probes.map(|it| it.locks.clone()).collect()));
        }
        let lost = sessions.iter().filter(|it| it.lock.loss().is_some()).count();
        let is_silent = |it: &&Session| !matches!(it.locks.connection(), Connection::Up);
        let silent = sessions.iter().filter(is_silent).count();
        println!("{} {} {lost} {silent}", slowest.0.as_nanos(), slowest.1);
    }
    Ok(())
}

struct Session {
    number: usize,
    locks: Locks,
    lock: Lock,
}

async fn connect(
    url: String,
    numbers: std::ops::Range<usize>,
    partitions: usize,
) -> io::Result<Vec<Session>> {
    let (places, mut tasks) = (Arc::new(Semaphore::new(CONNECTING_MAX)), JoinSet::new());
    for number in numbers {
        let (places, url) = (places.clone(), url.clone());
        tasks.spawn(async move {
            let _place = places.acquire().await.map_err(io::Error::other)?;
            let partition = format!("p{}", number % partitions);
            let connect = Locks::connect(url).partition(partition).unreachable_after(None).retry();
            let locks = connect.await.map_err(io::Error::other)?;
            let lock = locks.request(format!("own{number}")).await.map_err(io::Error::other)?;
            Ok(Session { number, locks, lock })
        });
    }
    let mut sessions = Vec::new();
    while let Some(session) = tasks.join_next().await {
        let session: io::Result<Session> = session.map_err(io::Error::other)?;
        sessions.push(session?);
    }
    Ok(sessions)
}

/// Requests a free name in each partition. Returns the time of the slowest grant, and how many
/// failed.
async fn probe(probes: Vec<Locks>) -> (Duration, usize) {
    let (start, mut tasks) = (Instant::now(), JoinSet::new());
    for locks in probes {
        tasks.spawn(async move { locks.request("new").timeout(GRANT_MAX).await.is_ok() });
    }
    let mut failed = 0;
    while let Some(granted) = tasks.join_next().await {
        failed += usize::from(!granted.unwrap_or(false));
    }
    (start.elapsed(), failed)
}
