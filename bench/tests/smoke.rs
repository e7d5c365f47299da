//! The whole thing runs and says what its readers rely on. No time is asserted.

use std::collections::BTreeMap;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench")).args(arguments).output().expect("the command starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("it prints text")
}

/// The ratio lines: (case, peer) to value. Panics on a line that is none of `ratio CASE PEER VALUE`.
fn ratios(text: &str) -> BTreeMap<(String, String), f64> {
    text.lines()
        .filter(|line| line.starts_with("ratio "))
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [_, case, peer, value] = words[..] else { panic!("not four words: {line}") };
            let value: f64 = value.parse().expect("the value is a number");
            assert!(value.is_finite() && value > 0.0, "{line}");
            ((case.to_string(), peer.to_string()), value)
        })
        .collect()
}

/// There is a ratio for each case and peer, and no other.
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
fn without_a_suite_the_suites_are_listed() {
    let output = bench(&[]);
    assert!(output.status.success());
    let text = stdout(&output);
    for suite in ["engine", "inprocess"] {
        assert!(text.contains(&format!("\n  {suite} ")), "{suite}");
    }
}

#[test]
fn an_unknown_suite_is_an_error() {
    let output = bench(&["nonsense"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}

#[test]
fn the_engine_suite_runs_every_case_against_both_floors() {
    let output = bench(&["engine", "--quick", "--rounds", "1"]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    let ratios = ratios(&text);
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
fn the_inprocess_suite_runs_every_case_against_every_peer() {
    let output = bench(&["inprocess", "--quick", "--rounds", "1"]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    let cases = [
        "hot",
        "distinct-1m",
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
    let peers = ["lockable", "keyed-lock", "dashmap-clean", "dashmap-leak"];
    assert_complete(&ratios(&text), &cases, &peers);
    for target in ["lockable on queued-100k", "dashmap-clean on hot", "dashmap-leak on hot"] {
        assert!(text.contains(target), "no target: {target}");
    }
}

#[test]
fn the_filter_picks_cases() {
    let output = bench(&["engine", "--quick", "--rounds", "1", "--filter", "scope"]);
    let ratios = ratios(&stdout(&output));
    assert_eq!(ratios.len(), 4);
    assert!(ratios.keys().all(|(case, _)| case.starts_with("scope-")));
}
