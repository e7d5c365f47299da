//! `navlocks unlock`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use clap::{Args, Parser};
use navlocks::Scope;
use rustix::process::Signal;

use super::lock::{HELD_FOR, Lock};
use crate::command::{names, short};
use crate::exit::{Exit, Failure};
use crate::process::{Process, describe, shells};

/// How long the process of a lock may take to release it.
const RELEASE_MAX: Duration = Duration::from_secs(15);

/// Release a lock of `navlocks lock`
///
/// Releases the lock that this shell has on exactly these names, or all its locks if there is no
/// name, and returns when they are free. Not by the name alone, as release --force does: another
/// shell has another lock.
#[derive(Debug, Args)]
pub(crate) struct Unlock {
    /// The names of the lock
    #[arg(value_name = "NAME")]
    names: Vec<OsString>,
    /// Release the lock of this process [default: the shell that asks]
    #[arg(long, value_name = "PID", allow_negative_numbers = true)]
    pid: Option<i32>,
}

/// A process that holds a lock for another one.
struct Holder {
    process: Process,
    held_for: i32,
    scope: Scope,
}

/// The command line of a holder.
#[derive(Debug, Parser)]
#[command(name = "lock")]
struct OnlyLock {
    #[command(flatten)]
    lock: Lock,
}

impl Unlock {
    pub(crate) fn perform(&self) -> Result<(), Failure> {
        let scope = match &self.names[..] {
            [] => None,
            names => Some(names::scope(names)?),
        };
        let owners = match self.pid {
            Some(pid) => vec![Process::open(pid)?.pid()],
            None => shells(),
        };
        let fits = |holder: &Holder| scope.as_ref().is_none_or(|scope| holder.scope == *scope);
        let holders: Vec<Holder> = holders().filter(fits).collect();
        let owns = |owner: &&i32| holders.iter().any(|holder| holder.held_for == **owner);
        let Some(owner) = owners.iter().find(owns) else {
            return Err(not_held(&owners, scope.as_ref(), &holders));
        };
        let own: Vec<&Holder> = holders.iter().filter(|it| it.held_for == *owner).collect();
        for holder in &own {
            holder.process.signal(Signal::TERM);
            // A stopped process receives the signal when it goes on.
            holder.process.signal(Signal::CONT);
        }
        let stays = |holder: &&&Holder| !holder.process.ends_within(RELEASE_MAX);
        match own.iter().find(stays) {
            None => Ok(()),
            Some(holder) => {
                let (scope, pid) = (short(&holder.scope), holder.process.pid());
                let message = format!("'{scope}' is not released yet: process {pid} does not end");
                Err(Failure::new(Exit::Silent, message))
            }
        }
    }
}

/// Returns the sentence about a lock that this shell does not have.
fn not_held(owners: &[i32], scope: Option<&Scope>, others: &[Holder]) -> Failure {
    let owner = owners.last().map(|pid| describe(*pid)).unwrap_or_default();
    let mut text = match scope {
        Some(scope) => format!("{owner} has no lock on '{}'", short(scope)),
        None => format!("{owner} has no lock"),
    };
    match (scope, others.first()) {
        (Some(_), Some(other)) => text.push_str(&format!(
            ": it is that of another process, and --pid {} releases it",
            other.held_for
        )),
        _ => text.push_str(": it was released or lost before, or another shell asked for it"),
    }
    Failure::new(Exit::Conflict, text)
}

/// Returns the processes of this user that hold locks for others.
fn holders() -> impl Iterator<Item = Holder> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter_map(|pid| {
        words(pid)?;
        let process = Process::open(pid).ok()?;
        // Read again: by now the number is that of the open process.
        let words = words(pid)?;
        let held_for = words.get(2)?.to_str()?.parse().ok()?;
        let scope = OnlyLock::try_parse_from(words).ok()?.lock.scope().ok()?;
        Some(Holder { process, held_for, scope })
    })
}

/// Returns the command line of a process from its second word, if it is a holder.
fn words(pid: i32) -> Option<Vec<OsString>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = line.strip_suffix(&[0])?;
    let words = line.split(|byte| *byte == 0).skip(1);
    let words: Vec<OsString> = words.map(|word| OsStr::from_bytes(word).to_owned()).collect();
    (words.first()? == "lock" && words.get(1)? == HELD_FOR).then_some(words)
}
