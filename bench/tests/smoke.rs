//! Every suite runs and prints the lines that its readers rely on. No time is asserted.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    // A test installs nothing: a missing peer is skipped.
    command.args(arguments).env("NAVLOCKS_BENCH_INSTALL", "no");
    command
}

fn bench(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the command starts")
}

/// Makes an empty folder for temporary files. Its path is short, for Unix sockets, and open to the
/// peers' accounts.
fn temporary(name: &str) -> PathBuf {
    let path = PathBuf::from("/tmp").join(format!("smoke-{}-{name}", std::process::id()));
    fs::create_dir(&path).expect("it is new");
    path
}

/// Removes the folder; fails when something is in it.
fn assert_empty(folder: &Path) {
    fs::remove_dir(folder).expect("nothing was left behind");
}

/// Returns the peers that the run did not skip.
fn present<'a>(text: &str, peers: &[&'a str]) -> Vec<&'a str> {
    let program = |peer: &str| peer.split('-').next().map(str::to_string).unwrap_or_default();
    let there = |peer: &str| !text.contains(&format!("left out: {}: ", program(peer)));
    peers.iter().copied().filter(|peer| there(peer)).collect()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("it prints text")
}

/// Returns the ratio lines: (case, peer) to value. Panics on a line that is none of `ratio CASE
/// PEER VALUE`.
fn ratios(text: &str) -> BTreeMap<(String, String), f64> {
    text.lines()
        .filter(|line| line.starts_with("ratio "))
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [_, case, peer, value] = words[..] else { panic!("not four words: {line}") };
            let value: f64 = value.parse().expect("the value is a number");
            // On a busy machine a ratio of such short rounds may be so small that it prints as 0.
            assert!(value.is_finite() && value >= 0.0, "{line}");
            ((case.to_string(), peer.to_string()), value)
        })
        .collect()
}

/// Asserts that there is a ratio for each case and peer, and no other.
fn assert_complete(ratios: &BTreeMap<(String, String), f64>, cases: &[&str], peers: &[&str]) {
    for case in cases {
        for peer in peers {
            assert!(
                ratios.contains_key(&(case.to_string(), peer.to_string())),
                "no ratio of {case} to {peer}"
            );
        }
    }
    assert_eq!(ratios.len(), cases.len() * peers.len());
}

#[test]
fn run_without_suite_lists_the_suites() {
    let output = bench(&[]);
    assert!(output.status.success());
    let text = stdout(&output);
    for suite in
        ["engine", "inprocess", "service", "cluster", "scale", "cli", "node", "abuse", "dashboard"]
    {
        assert!(text.contains(&format!("\n  {suite} ")), "{suite}");
    }
}

#[test]
fn unknown_suite_is_an_error() {
    let output = bench(&["nonsense"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}

#[test]
fn engine_suite_runs_every_case_against_both_floors() {
    let output = bench(&["engine", "--quick", "--rounds", "1"]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    let mut ratios = ratios(&text);
    let host = ("host".to_owned(), "space".to_owned());
    assert!(ratios.remove(&host).is_some(), "a host is compared with its space");
    let cases = [
        "hot",
        "hot-among-1m",
        "queue-abort-among-100k",
        "handoff-among-100k",
        "hold-1m-request",
        "hold-1m-release",
        "enqueue-1k",
        "drain-1k",
        "enqueue-100k",
        "drain-100k",
        "enqueue-1m",
        "drain-1m",
        "abort-half-1m",
        "terminate-10-among-1m",
        "scope-2",
        "scope-4",
        "shared-10k",
        "steal",
        "memory-held",
        "memory-held-peak",
        "memory-pending",
        "memory-pending-peak",
    ];
    assert_complete(&ratios, &cases, &["floor-sip", "floor-fast"]);
    assert!(text.contains("\nsnapshot-20k "), "the table has our own case");
    assert!(text.contains("\ntargets\n"));
}

#[test]
fn inprocess_suite_runs_every_case_against_every_peer() {
    let output = bench(&["inprocess", "--quick", "--rounds", "1"]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    let cases = [
        "hot",
        "distinct-1m",
        "hold-1m",
        "hold-1m-lock",
        "hold-1m-unlock",
        "two-threads-own",
        "two-threads-same",
        "handoff",
        "handoff-one",
        "queued-100k",
        "memory-held",
        "memory-held-bare",
    ];
    let peers = ["lockable", "keyed-lock", "dashmap-clean", "dashmap-leak", "dashmap-leak-known"];
    let mut ratios = ratios(&text);
    for case in ["limit-hot", "limit-queued-100k"] {
        for peer in ["tokio-semaphore", "async-lock"] {
            let ratio = (case.to_owned(), peer.to_owned());
            assert!(ratios.remove(&ratio).is_some(), "no ratio of {ratio:?}");
        }
    }
    assert_complete(&ratios, &cases, &peers);
    for target in ["lockable on queued-100k", "dashmap-clean on hot", "dashmap-leak on hot"] {
        assert!(text.contains(target), "no target: {target}");
    }
}

/// Returns the output of a quick run of a suite. Asserts that its servers leave nothing behind.
fn run_and_clean_up(suite: &str) -> String {
    let folder = temporary(suite);
    let output = command(&[suite, "--quick", "--rounds", "1"])
        .env("TMPDIR", &folder)
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{output:?}");
    assert_empty(&folder);
    stdout(&output)
}

#[test]
fn service_suite_runs_every_case_against_every_peer_that_is_there() {
    let text = run_and_clean_up("service");
    let ratios = ratios(&text);
    let cycling = ["echo", "redis", "redis-piped", "postgres", "etcd"];
    let passing_on = ["echo", "redis-spin", "redis-poll", "postgres", "etcd"];
    let contests: [(&[&str], &[&str]); 6] = [
        (&["limit-16-"], &["redis-semaphore"]),
        (&["cycle-1-", "cycle-16-", "cycle-64-"], &cycling),
        (&["crowd-10k-"], &["echo", "redis", "etcd"]),
        (&["handoff-p50-", "handoff-p99-"], &passing_on),
        (&["memory-idle", "memory-holding"], &["echo", "redis", "postgres", "etcd"]),
        (&["restart", "restart-lost"], &["redis-aof", "postgres", "etcd"]),
    ];
    let mut expected = 0;
    for (cases, peers) in contests {
        for case in cases {
            let transports: &[&str] = if case.ends_with('-') { &["tcp", "unix"] } else { &[""] };
            for transport in transports {
                let peers = present(&text, peers);
                for peer in peers.iter().filter(|&&peer| (*transport, peer) != ("unix", "etcd")) {
                    let ratio = (format!("{case}{transport}"), peer.to_string());
                    assert!(ratios.contains_key(&ratio), "no ratio of {ratio:?}");
                    expected += 1;
                }
            }
        }
    }
    assert_eq!(ratios.len(), expected);
    assert!(text.contains("locks lost in a restart"), "no target");
    for (target, peer) in [
        ("times redis on cycle-1-tcp", "redis"),
        ("times redis on cycle-64-unix", "redis"),
        ("times postgres on handoff-p50-unix", "postgres"),
        ("bytes per client in memory-idle", "echo"),
    ] {
        assert!(present(&text, &[peer]).is_empty() || text.contains(target), "no target: {target}");
    }
}

#[test]
fn cluster_suite_runs_every_case_against_every_peer_that_is_there() {
    let text = run_and_clean_up("cluster");
    if present(&text, &["navlocks"]).is_empty() {
        return;
    }
    let ratios = ratios(&text);
    for case in ["cycle-1", "cycle-16", "cycle-64", "handoff-p50", "handoff-p99"] {
        for peer in present(&text, &["service", "etcd", "carried"]) {
            assert!(ratios.contains_key(&(case.to_string(), peer.to_string())), "{case} {peer}");
        }
    }
    assert!(ratios.contains_key(&("writes-per-1k".to_string(), "etcd".to_string())), "{text}");
    for target in [
        "times service on cycle-1",
        "times etcd on handoff-p50",
        "writes to etcd per 1,000 cycles",
        "first grant after a kill",
        "first grant after an owner left",
        "locks lost by kills",
    ] {
        assert!(text.contains(target), "no target: {target}");
    }
}

#[test]
fn cli_suite_runs() {
    let text = run_and_clean_up("cli");
    let ratios = ratios(&text);
    for (case, peers) in [
        ("run-true", &["true", "flock", "etcdctl"][..]),
        ("run-200", &["true", "flock"]),
        ("limit-true", &["sem"]),
        ("limit-200", &["sem"]),
    ] {
        for peer in present(&text, peers) {
            assert!(ratios.contains_key(&(case.to_string(), peer.to_string())), "{case} {peer}");
        }
    }
    assert!(text.contains("times flock on run-true"), "no target");
}

#[test]
fn abuse_suite_runs() {
    let text = run_and_clean_up("abuse");
    let ratios = ratios(&text);
    for case in ["queries", "events", "places", "grants", "clients"] {
        assert!(ratios.contains_key(&(case.to_string(), "idle".to_string())), "{case}");
        assert!(text.contains(&format!("slowest cycle beside {case}")), "no target of {case}");
    }
}

#[test]
fn dashboard_suite_runs_every_case_where_a_browser_is() {
    let output = bench(&["dashboard", "--quick", "--rounds", "1"]);
    let text = stdout(&output);
    if !present(&text, &["navlocks"]).is_empty() {
        assert!(output.status.success(), "{output:?}");
        let ratios = ratios(&text);
        for case in ["cycle-among-10k", "cycle-among-50k-queued"] {
            assert!(ratios.contains_key(&(case.to_string(), "alone".to_string())), "{case}");
        }
        assert!(text.contains("page-second") && text.contains("page-memory"), "{text}");
    }
}

#[test]
fn node_suite_runs_every_case_against_every_peer_that_is_there() {
    let output = bench(&["node", "--quick", "--rounds", "1"]);
    let text = stdout(&output);
    if !present(&text, &["navlocks"]).is_empty() {
        assert!(output.status.success(), "{output:?}");
        let ratios = ratios(&text);
        let everybody = ["node", "deno"];
        let quick_for_all = [
            "sequential",
            "distinct-10k",
            "queued-1k",
            "queued-20k",
            "among-0",
            "among-10k",
            "abort-half-20k",
            "query-20k",
            "handoff",
            "memory-held",
        ];
        let contests: [(&[&str], &[&str]); 3] = [
            (&quick_for_all, &everybody),
            (&["queued-100k", "among-50k"], &["deno"]),
            (&["page-sequential"], &present(&text, &["chromium"])),
        ];
        let mut expected = 0;
        for (cases, peers) in contests {
            for (case, peer) in
                cases.iter().flat_map(|case| peers.iter().map(move |peer| (case, peer)))
            {
                let ratio = (case.to_string(), peer.to_string());
                assert!(ratios.contains_key(&ratio), "no ratio of {ratio:?}");
                expected += 1;
            }
        }
        assert_eq!(ratios.len(), expected);
        for target in
            ["times node on sequential", "times node on memory-held", "among-50k over among-0"]
        {
            assert!(text.contains(target), "no target: {target}");
        }
    } else {
        // The package is not built here, and a test installs nothing.
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn servers_end_with_the_run() {
    let folder = temporary("term");
    let mut child = command(&["service", "--filter", "cycle-1-"])
        .env("TMPDIR", &folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let started = |line: &String| line.starts_with("servers: ");
    let line = lines.map(|line| line.expect("it prints text")).find(started);
    assert!(line.is_some(), "it says what it started");
    let id = child.id().to_string();
    let servers = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("it runs");
    assert!(!servers.trim().is_empty());
    let told = Command::new("kill").args(["-TERM", &id]).status().expect("there is a kill");
    assert!(told.success());
    let ended = child.wait_with_output().expect("it can be waited for");
    assert_eq!(ended.status.code(), Some(128 + 15));
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.lines().all(|line| line.contains(" begins after ")), "only its progress: {said}");
    assert_empty(&folder);
    for server in servers.split_whitespace() {
        assert!(!Path::new("/proc").join(server).exists(), "process {server} lives on");
    }
}

#[test]
fn filter_selects_cases() {
    let output = bench(&["engine", "--quick", "--rounds", "1", "--filter", "scope"]);
    let ratios = ratios(&stdout(&output));
    assert_eq!(ratios.len(), 4);
    assert!(ratios.keys().all(|(case, _)| case.starts_with("scope-")));
}
