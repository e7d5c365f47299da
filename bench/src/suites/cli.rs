//! The command: how long it takes to run another command under a lock.

mod tool;

use std::path::PathBuf;
use std::rc::Rc;

use super::{OURS, Plan, Suite, Target};
use crate::harness::Unit::Nanoseconds;
use crate::harness::{Contest, Options, Row};
use servers::{self as server, Folder, Server, Transport};
use tool::Tool;

/// The names of the sides.
const TRUE: &str = "true";
const FLOCK: &str = "flock";
const ETCDCTL: &str = "etcdctl";
const SEM: &str = "sem";

/// How many runs of one name there may be at a time, in the cases with a limit.
const LIMIT: &str = "4";

/// Runs in a round; the median counts.
const REPEATED: usize = 20;
/// Runs that start at the same time.
const AT_ONCE: usize = 200;

pub(super) const SUITE: Suite = Suite {
    name: "cli",
    about: "a command that runs `true` under a lock, from its start to its end",
    plan,
    targets,
};

fn plan(options: &Options) -> Plan {
    let mut notes = vec![
        "navlocks: `navlocks run NAME -- true`, installed, and the service runs already"
            .to_string(),
        "true: the command alone, no lock; flock: `flock FILE true`; etcdctl: `etcdctl lock NAME true`"
            .to_string(),
        format!("run-true: the median of {REPEATED} runs one after the other; run-200: the time of all over their number"),
    ];
    let mut tools = Vec::new();
    let mut limited = Vec::new();
    match navlocks() {
        Ok(tool) => {
            limited.push(tool.with(&["run", "--limit", LIMIT, "limited", "--", "true"]));
            tools.push(tool);
        }
        Err(problem) => notes.push(format!("left out: {OURS}: {problem}")),
    }
    match sem() {
        Ok(tool) => limited.push(tool),
        Err(problem) => notes.push(format!("left out: {SEM}: {problem}")),
    }
    tools.push(Tool::new(TRUE, "true", &[]));
    match Folder::new("flock") {
        Ok(folder) => {
            let file = folder.path().join("file");
            tools
                .push(Tool::new(FLOCK, "flock", &[file.as_os_str(), "true".as_ref()]).keep(folder));
        }
        Err(problem) => notes.push(format!("left out: {FLOCK}: {problem}")),
    }
    let mut alone = tools.clone();
    match etcdctl() {
        Ok(tool) => alone.push(tool),
        Err(problem) => notes.push(format!("left out: {ETCDCTL}: {problem}")),
    }
    let (repeated, at_once) = if options.quick { (2, 5) } else { (REPEATED, AT_ONCE) };
    let contest = |case, tools: Vec<Tool>, round: fn(&Tool, usize) -> f64, count| {
        tools.into_iter().fold(Contest::new(&[case], Nanoseconds), |contest, tool| {
            contest.side(tool.word(), move || Box::new(move || vec![round(&tool, count)]))
        })
    };
    let contests = vec![
        contest("run-true", alone, tool::repeat, repeated),
        contest("run-200", tools, tool::at_once, at_once),
        contest("limit-true", limited.clone(), tool::repeat, repeated),
        contest("limit-200", limited, tool::at_once, at_once),
    ];
    Plan { notes, contests }
}

fn navlocks() -> Result<Tool, String> {
    let built = server::navlocks_command()?;
    // A copy, as an installation makes one. The linker leaves its file in memory page by page,
    // and a start from that takes a tenth longer.
    let installed = Folder::new("installed").map_err(|error| error.to_string())?;
    let command = installed.path().join("navlocks");
    std::fs::copy(built, &command).map_err(|error| error.to_string())?;
    let server: Rc<Server> = Rc::new((server::NAVLOCKS.start)()?);
    let Some(server::Address::Unix(socket)) = server.address(Transport::Unix) else {
        return Err("it has no socket".to_string());
    };
    let folder = socket.parent().map(PathBuf::from).unwrap_or_default();
    let words = ["run", "name", "--", "true"];
    let tool = Tool::new(OURS, command, &words.map(AsRef::as_ref));
    Ok(tool.env("NAVLOCKS_DIR", folder).keep((installed, server)))
}

fn etcdctl() -> Result<Tool, String> {
    let etcdctl = server::program("etcdctl", "etcd-client")?;
    let server: Rc<Server> = Rc::new((server::ETCD.start)()?);
    let Some(server::Address::Tcp(address)) = server.address(Transport::Tcp) else {
        return Err("it does not listen".to_string());
    };
    let endpoint = format!("--endpoints=http://{address}");
    let words = [endpoint.as_str(), "lock", "name", "true"];
    Ok(Tool::new(ETCDCTL, etcdctl, &words.map(AsRef::as_ref)).env("ETCDCTL_API", "3").keep(server))
}

/// Returns `sem` of GNU parallel, which counts processes by files in its home.
fn sem() -> Result<Tool, String> {
    let sem = server::program(SEM, "parallel")?;
    let home = Folder::new(SEM).map_err(|error| error.to_string())?;
    let words = ["--fg", "--id", "limited", "-j", LIMIT, "true"];
    let tool = Tool::new(SEM, sem, &words.map(AsRef::as_ref));
    Ok(tool.env("PARALLEL_HOME", home.path()).env("HOME", home.path()).keep(home))
}

fn targets(rows: &[Row]) -> Vec<Target> {
    let row = rows.iter().find(|row| row.case == "run-true" && row.ours().peer == OURS);
    let target = row.and_then(|row| Some((row, row.peer(FLOCK)?))).map(|(row, flock)| Target {
        text: format!("times {FLOCK} on {}", row.case),
        measured: 1.0 / row.ratio(flock),
        limit: 1.25,
    });
    target.into_iter().collect()
}
