//! The subcommands. Their definitions are the help, the completions and the manual at once.

mod locking;
pub(crate) mod services;
mod completions;
mod views;
mod duration;
mod man;
mod names;
mod target;
mod time;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rustix::io::fcntl_dupfd_cloexec;

use crate::exit::{Exit, Failure};
use crate::printer;

pub(crate) use duration::say;
pub(crate) use names::short;

/// Named locks for shells, cron, CI and services
///
/// `navlocks run NAME -- COMMAND` waits its turn, runs the command and releases the lock when the
/// command ends. A service of the user's own starts when it is needed, and ends when it is not.
#[derive(Debug, Parser)]
#[command(name = "navlocks", version, max_term_width = 100)]
#[command(after_long_help = format!("{}\n{}", man::environment(), Exit::table()))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// `navlocks run` alone. To make the definitions of all commands takes longer than to run one.
#[derive(Debug, Parser)]
#[command(name = "run")]
struct OnlyRun {
    #[command(flatten)]
    run: locking::run::Run,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(locking::run::Run),
    Lock(Box<locking::lock::Lock>),
    Unlock(locking::unlock::Unlock),
    Query(views::query::Query),
    Watch(views::watch::Watch),
    Why(views::why::Why),
    Graph(views::graph::Graph),
    Dashboard(services::dashboard::Dashboard),
    Leader(locking::leader::Leader),
    Steal(locking::steal::Steal),
    Release(locking::release::Release),
    Serve(Box<services::serve::Serve>),
    Stop(services::stop::Stop),
    Doctor(views::doctor::Doctor),
    Cluster(services::cluster::Cluster),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    /// Performs the subcommand. Returns the exit code.
    fn perform(self, arguments: &[OsString]) -> Result<u8, Failure> {
        let done = match self {
            Self::Run(run) => return block_on(run.perform(arguments)),
            Self::Lock(lock) => return lock.perform(arguments),
            Self::Unlock(unlock) => unlock.perform(),
            Self::Query(query) => block_on(query.perform()),
            Self::Watch(watch) => block_on(watch.perform()),
            Self::Why(why) => block_on(why.perform()),
            Self::Graph(graph) => block_on(graph.perform()),
            Self::Dashboard(dashboard) => block_on(dashboard.perform()),
            Self::Leader(leader) => block_on(leader.perform()),
            Self::Steal(steal) => block_on(steal.perform()),
            Self::Release(release) => block_on(release.perform()),
            Self::Serve(serve) => block_on(serve.perform()),
            Self::Stop(stop) => block_on(stop.perform()),
            Self::Doctor(doctor) => block_on(doctor.perform()),
            Self::Cluster(cluster) => block_on(cluster.perform()),
            Self::Completions(completions) => completions.perform(),
            Self::Man(man) => man.perform(),
        };
        done.map(|()| Exit::Success.code())
    }
}

/// Runs the command with these arguments. A failure is printed on standard error.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    perform(arguments.into_iter().collect()).into()
}

/// Runs the command with these arguments. Returns the exit code.
pub(crate) fn perform(arguments: Vec<OsString>) -> u8 {
    let done = match arguments.get(1) {
        Some(word) if word == "serve" => perform_serve(&arguments),
        _ => match parse(&arguments) {
            Ok(command) => command.perform(&arguments),
            Err(error) => usage::explain(&error, &arguments),
        },
    };
    done.unwrap_or_else(|failure| {
        if !failure.message.is_empty() {
            printer::tell(&failure.message);
        }
        // An empty output would be no error for `eval`, and the script would go on.
        if arguments.get(1).is_some_and(|word| word == "lock") {
            let _no_reader = printer::print(&format!("(exit {})\n", failure.code));
        }
        failure.code
    })
}

/// Performs `navlocks serve`, which takes settings from the environment and a file, too.
fn perform_serve(typed: &[OsString]) -> Result<u8, Failure> {
    let completed = services::serve::settings::complete(typed)?;
    match parse(&completed.arguments) {
        Ok(command) => command.perform(typed),
        Err(error) => usage::explain(&error, typed).map_err(|failure| {
            let option = usage::argument(&error);
            match completed.source(&option) {
                Some(origin) => Failure {
                    message: format!("{}; {option} is set in {origin}", failure.message),
                    ..failure
                },
                None => failure,
            }
        }),
    }
}

/// Parses the arguments. Only help, errors and other commands need all definitions.
fn parse(arguments: &[OsString]) -> Result<Command, clap::Error> {
    if let [_, word, ..] = arguments
        && word == "run"
        && let Ok(only) = OnlyRun::try_parse_from(&arguments[1..])
    {
        return Ok(Command::Run(only.run));
    }
    Cli::try_parse_from(arguments).map(|cli| cli.command)
}

/// Makes a runtime on the main thread: the kernel kills a command when the thread that started it
/// ends.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    has_room()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(Exit::System, format!("the system has no room for an event loop: {error}"))
    })?;
    runtime.block_on(work)
}

/// Fails if there are too few file descriptors for an event loop, which would panic.
fn has_room() -> Result<(), Failure> {
    const NEEDED: usize = 8;
    let room: Result<Vec<_>, _> =
        (0..NEEDED).map(|_| fcntl_dupfd_cloexec(rustix::stdio::stderr(), 0)).collect();
    room.map(|_| ()).map_err(|error| {
        let error = std::io::Error::from(error);
        let message = format!("too few files can be open at a time: {error}; raise ulimit -n");
        Failure::new(Exit::System, message)
    })
}
