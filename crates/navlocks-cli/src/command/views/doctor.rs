//! `navlocks doctor`.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::{Duration, Instant};

use clap::Args;
use navlocks::{Explained, Locks, Snapshot, UnclaimedSession};
use rustix::fs::{Access, access};

use super::waits::{Waits, who};
use crate::command::say;
use crate::command::services::etcd::EtcdOptions;
use crate::command::services::recovery;
use crate::command::services::stop::Running;
use crate::command::target::Target;
use crate::exit::{Exit, Failure};
use crate::printer::{self, Harmless, Palette};
use crate::service_dir::{self, Found, ServiceDir};

/// Find out what is wrong
///
/// Reports the service and its socket, versions that differ, deadlocks, and the last error in the
/// log. Changes nothing.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    etcd: EtcdOptions,
}

/// The pause between two questions for the sessions that have not come back.
const CLAIMS_PAUSE: Duration = Duration::from_millis(20);

/// The findings, line by line.
struct Report {
    text: String,
    palette: Palette,
    bad: usize,
}

impl Doctor {
    pub(crate) async fn perform(self) -> Result<(), Failure> {
        let mut report = Report { text: String::new(), palette: Palette::of_stdout(), bad: 0 };
        let version = env!("CARGO_PKG_VERSION");
        let protocol = navlocks_wire::VERSION;
        report.good(&format!("navlocks {version}, protocol {protocol}"));
        match self.target.place() {
            Ok(Some(place)) => look_at_place(&place, &mut report),
            Ok(None) => report.good("another service than the user's own is meant"),
            Err(failure) => report.bad(&failure.message),
        }
        if self.etcd.cluster.is_some() {
            look_at_cluster(&self.etcd, &mut report).await;
        }
        match self.target.connect_if_running().await {
            Ok(None) => {
                let place = self.target.place()?;
                let left = place.map(|place| place.has_sessions()).transpose()?.unwrap_or(false);
                // After a fault it is not known whether a service can start.
                report.good(match (left, report.bad) {
                    (true, 0) => {
                        "no service runs, and clients of the last one may hold locks: the next command starts one"
                    }
                    (true, _) => "no service runs, and clients of the last one may hold locks",
                    (false, 0) => "no service runs; one starts when it is needed",
                    (false, _) => "no service runs",
                });
            }
            Ok(Some(locks)) => {
                look_at_locks(&self.target, &locks, &mut report).await;
                Target::finish(locks).await;
            }
            // The folder may be the cause, which the report has already.
            Err(failure) if report.text.contains(&failure.message) => {}
            Err(failure) => report.bad(&failure.message),
        }
        printer::print(&report.text)?;
        match report.bad {
            0 => Ok(()),
            1 => Err(Failure::new(Exit::Conflict, "one thing is not as it should be")),
            bad => {
                Err(Failure::new(Exit::Conflict, format!("{bad} things are not as they should be")))
            }
        }
    }
}

/// Half of the default quota of etcd.
#[cfg(feature = "etcd")]
const STORE_BYTES_MAX: u64 = 1 << 30;

/// Says how the etcd of a cluster is.
#[cfg(feature = "etcd")]
async fn look_at_cluster(etcd: &EtcdOptions, report: &mut Report) {
    // A write must be over well before the next renewal is due, a third of the node lease later.
    const WRITES_PER_LEASE: u32 = 10;
    let asked = async {
        let (address, tls) = etcd.address()?;
        let failed = |error: navlocks_etcd::Error| crate::command::services::etcd::failure(&error);
        let inspection = navlocks_etcd::Inspection::new(&address, &tls).map_err(failed)?;
        let health = inspection.health().await.map_err(failed)?;
        Ok::<_, Failure>((health, inspection.look().await))
    };
    let (health, view) = match asked.await {
        Ok(asked) => asked,
        Err(failure) => return report.bad(&failure.message),
    };
    let navlocks_etcd::Health { version, advice, is_full, bytes, write } = health;
    match advice {
        Some(advice) => report.good(&format!("etcd {version}: {advice}")),
        None => report.good(&format!("etcd {version}")),
    }
    if is_full {
        report.bad(&navlocks_etcd::Error::StoreFull.to_string());
    } else if bytes >= STORE_BYTES_MAX {
        report.bad(&format!(
            "the database of etcd has {} MB and is full at 2048 MB, unless etcd has another quota: is its history compacted, by a node or by --auto-compaction-retention? then run etcdctl defrag",
            bytes >> 20
        ));
    }
    let view = match view {
        Ok(view) => view,
        Err(error) => return report.bad(&error.to_string()),
    };
    let (lease, millis) = (view.node_lease, write.as_millis());
    if write * WRITES_PER_LEASE > lease {
        report.bad(&format!(
            "etcd takes {millis} ms for a write, which is slow for a node lease of {}: nodes may lose their slots",
            say(lease)
        ));
    } else if !is_full {
        report
            .good(&format!("etcd takes {millis} ms for a write; the node lease is {}", say(lease)));
    }
    if let Some((node, sessions, left)) = view.unreplaceable() {
        report.bad(&format!(
            "if node {} dies, the others have {left} seats for {sessions} sessions: raise LimitNOFILE (ulimit -n) of the nodes, or add one",
            node.name
        ));
    }
    let free = view.slots.iter().filter(|slot| slot.address.is_none()).count();
    match (view.nodes.len(), free) {
        (0, _) => report.bad("the cluster has no node: start one with navlocks serve --cluster"),
        (nodes, 0) => report.good(&format!("{nodes} nodes own {} slots", view.slots.len())),
        (_, free) => report.bad(&format!("{free} of {} slots have no owner", view.slots.len())),
    }
}

#[cfg(not(feature = "etcd"))]
async fn look_at_cluster(_: &EtcdOptions, report: &mut Report) {
    report.bad(&crate::command::services::etcd::missing().message);
}

impl Report {
    fn good(&mut self, text: &str) {
        let mark = self.palette.good("ok ");
        self.text.push_str(&format!("{mark}  {text}\n"));
    }

    /// Adds a fault, unless two of the checks have found the same one.
    fn bad(&mut self, text: &str) {
        if self.text.contains(text) {
            return;
        }
        let mark = self.palette.bad("BAD");
        self.text.push_str(&format!("{mark}  {text}\n"));
        self.bad += 1;
    }
}

/// Says which other users have services of their own: their locks are apart from these.
fn look_at_other_users(place: &ServiceDir, report: &mut Report) {
    let others = place.of_other_users();
    let [first, ..] = &others[..] else { return };
    let users = match others.len() {
        1 => format!("user {first} has a service"),
        count => format!("{count} other users have services"),
    };
    report.good(&format!(
        "{users} of their own, and the same name there is another lock: for locks of all users give --system, with a service as in packaging/systemd"
    ));
}

fn look_at_place(place: &ServiceDir, report: &mut Report) {
    let folder = place.folder().display();
    look_at_namespace(place, report);
    look_at_other_users(place, report);
    match place.look() {
        Ok(Found::Private) => report.good(&format!("the folder {folder} is yours alone")),
        Ok(Found::Nothing) => return report.good(&format!("the folder {folder} is not there yet")),
        Err(failure) => return report.bad(&failure.message),
    }
    look_at_socket(place, report);
    look_at_state(place, report);
    let running = Running::find(place);
    let none_runs = matches!(running, Ok(None));
    match running {
        Ok(Some(service)) if service.is_navlocks() => {
            report.good(&format!("process {} serves", service.pid));
            let groups = fs::read_to_string(format!("/proc/{}/cgroup", service.pid));
            if let Some(unit) = foreign_unit(&groups.unwrap_or_default()) {
                report.bad(&format!(
                    "the service was started by {unit} and ends with it, and commands that hold locks must start it again then: enable the user unit navlocks-user.socket"
                ));
            }
        }
        Ok(Some(service)) => {
            report.good(&format!(
                "process {} listens, and starts the service when needed",
                service.pid
            ));
        }
        Ok(None) | Err(_) => {}
    }
    // The last line of a service whose start failed, unless its cause is in the report already.
    let no_cause = none_runs && report.bad == 0;
    let is_failure = |line: &str| no_cause && line.starts_with("navlocks: ");
    let is_error = |line: &String| line.contains("ERROR") || is_failure(line);
    if let Some(line) = place.last_words().filter(is_error) {
        report.bad(&format!("the log ends with: {}", Harmless(&line)));
    }
}

/// Returns the systemd service unit to which a process with these control groups belongs, unless it
/// is one of navlocks.
fn foreign_unit(groups: &str) -> Option<&str> {
    let mut lines = groups.lines();
    let path = lines.find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.strip_prefix(':').or_else(|| rest.strip_prefix("name=systemd:"))
    });
    // The innermost unit decides: a session of a user is a scope below the service of that user's
    // manager.
    let is_unit = |name: &&str| name.ends_with(".service") || name.ends_with(".scope");
    let unit = path?.rsplit('/').find(is_unit)?;
    (unit.ends_with(".service") && !unit.starts_with("navlocks")).then_some(unit)
}

/// Looks at the folder with the state that outlives the service.
fn look_at_state(place: &ServiceDir, report: &mut Report) {
    let folder = match service_dir::state_folder(Some(&place.socket())) {
        Ok(folder) => folder,
        Err(failure) => return report.bad(&failure.message),
    };
    let shown = folder.display();
    if folder != place.folder() {
        match service_dir::look(&folder) {
            Ok(Found::Private) => {}
            Ok(Found::Nothing) => return,
            Err(failure) => return report.bad(&failure.message),
        }
    }
    if let Err(error) = access(&folder, Access::WRITE_OK | Access::EXEC_OK) {
        return report.bad(&format!(
            "the service cannot remember fencing tokens in {shown}: {error}; it does not start without"
        ));
    }
    if service_dir::is_full(&folder) || service_dir::lacks_room_to_start(&folder) {
        return report.bad(&format!(
            "the disk of {shown} is full, and the service must remember fencing tokens there: make room"
        ));
    }
    report.good(&format!("fencing tokens are remembered in {shown}"));
}

/// Looks whether /tmp is another folder than the one of the user's other processes.
fn look_at_namespace(place: &ServiceDir, report: &mut Report) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut mounts = mounts.lines().map(|line| line.split(' '));
    // The fourth word of a line is the folder that is mounted, the fifth the mount point.
    let private = mounts.any(|mut words| {
        let (root, place) = (words.nth(3).unwrap_or_default(), words.next().unwrap_or_default());
        place == "/tmp" && root.contains("/systemd-private-")
    });
    if private && place.folder().starts_with("/tmp") {
        report.bad(
            "/tmp is private to this unit (PrivateTmp), so locks here exclude no process outside of it: set NAVLOCKS_DIR to a folder that all your jobs see",
        );
    }
}

fn look_at_socket(place: &ServiceDir, report: &mut Report) {
    let path = place.socket();
    let socket = path.display();
    match fs::symlink_metadata(&path) {
        Ok(found) if !found.file_type().is_socket() => {
            report.bad(&format!("{socket} is not a socket: remove it"));
        }
        Ok(found) if found.mode() & 0o077 != 0 => {
            let mode = found.mode() & 0o777;
            report.bad(&format!("others can use {socket} (its mode is {mode:o}): close it with chmod 600"));
        }
        Ok(_) => match Running::find(place) {
            Ok(Some(_)) => report.good(&format!("the socket {socket} is listened to")),
            Ok(None) => report.good(&format!(
                "the socket {socket} was left behind by a service that was killed; the next one replaces it"
            )),
            Err(failure) => report.bad(&failure.message),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => report.bad(&format!("the socket {socket} cannot be looked at: {error}")),
    }
}

async fn look_at_locks(target: &Target, locks: &Locks, report: &mut Report) {
    let answers = async {
        let unclaimed = await_claims(target, locks).await?;
        let (snapshot, reason) = target.query_with_reason(locks).await?;
        let waits = Waits::ask(target, locks, Explained::Deadlocked).await?;
        Ok::<_, Failure>((snapshot, reason, unclaimed, waits))
    };
    let (snapshot, reason, unclaimed, waits) = match answers.await {
        Ok(answers) => answers,
        Err(failure) => return report.bad(&failure.message),
    };
    let (held, pending) = (snapshot.held.len(), snapshot.pending.len());
    report.good(&format!("the service answers: {held} held, {pending} waiting"));
    if let Some(reason) = reason.filter(|_| unclaimed.is_empty()) {
        report.bad(&reason);
    }
    for session in unclaimed {
        report.bad(&recovery::sentence(&session));
    }
    for info in snapshot.held.iter().filter(|info| info.stopped) {
        let (names, pid, age) = (&info.scope, info.pid.unwrap_or_default(), say(info.age));
        report.bad(&format!(
            "'{names}' is held for {age} by {}: continue it with fg in its terminal or kill -CONT {pid}, or end it",
            who(info)
        ));
    }
    if waits.cycles.is_empty() {
        report.good("no client is deadlocked");
    }
    for line in waits.possible_deadlocks(|_| true) {
        report.good(&line);
    }
    for cycle in &waits.cycles {
        let who = cycle.requests().iter().filter_map(|request| describe(&snapshot, *request));
        let who = who.collect::<Vec<_>>().join(", ");
        let remedy = waits.remedy(cycle).unwrap_or_default();
        report.bad(&format!("{cycle}: {who}; {remedy}"));
    }
}

/// Returns the sessions of an earlier service whose clients do not come back within the answer
/// timeout.
/// Right after a start, those of living clients are about to; a stopped one is not waited for.
async fn await_claims(target: &Target, locks: &Locks) -> Result<Vec<UnclaimedSession>, Failure> {
    let until = Instant::now() + target.answer_timeout;
    loop {
        let unclaimed = target.answer(locks.unclaimed_sessions()).await?;
        let is_awaited = |it: &UnclaimedSession| it.pid.is_none_or(runs);
        if !unclaimed.iter().any(is_awaited) || Instant::now() >= until {
            return Ok(unclaimed);
        }
        tokio::time::sleep(CLAIMS_PAUSE).await;
    }
}

/// Returns true if a process of this machine has neither ended nor been stopped.
fn runs(pid: u32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program, in parentheses, may have any bytes.
    let end = stat.iter().rposition(|byte| *byte == b')');
    let state = end.and_then(|end| stat.get(end + 2));
    state.is_some_and(|state| !matches!(state, b'T' | b't' | b'Z' | b'X'))
}

/// Returns a request in words.
fn describe(snapshot: &Snapshot, request: navlocks::RequestId) -> Option<String> {
    let held = snapshot.held.iter().map(|info| (info, "holds"));
    let pending = snapshot.pending.iter().map(|info| (info, "waits for"));
    let (info, does) = held.chain(pending).find(|(info, _)| info.request == request)?;
    let tag = info.tag.as_deref().map(|tag| format!(" {}", Harmless(tag))).unwrap_or_default();
    let pid = info.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    Some(format!("{}{tag}{pid} {does} '{}'", info.client, info.scope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_in_a_unit_that_is_not_its_own_is_found() {
        let unified = "0::/system.slice/actions-runner.service/job\n";
        assert_eq!(foreign_unit(unified), Some("actions-runner.service"));
        let legacy = "4:memory:/x.service\n1:name=systemd:/system.slice/cron.service\n";
        assert_eq!(foreign_unit(legacy), Some("cron.service"));
    }

    #[test]
    fn service_in_a_session_its_own_unit_or_none_is_fine() {
        let user = "/user.slice/user-1000.slice";
        for path in [
            format!("{user}/session-3.scope"),
            format!("{user}/user@1000.service/app.slice/terminal.scope"),
            format!("{user}/user@1000.service/app.slice/navlocks-user.service"),
            "/".to_owned(),
        ] {
            assert_eq!(foreign_unit(&format!("0::{path}\n")), None, "{path}");
        }
        assert_eq!(foreign_unit(""), None);
    }
}
