//! The npm package beside the `navigator.locks` that JavaScript runtimes have of their own.

pub(super) mod runtime;

use super::{OURS, Plan, Suite, Target};
use crate::harness::Unit::{self, Bytes, Nanoseconds};
use crate::harness::{Contest, Options, Row};
use runtime::Runtime;

/// The names of the sides.
const NODE: &str = "node";
const DENO: &str = "deno";
const CHROMIUM: &str = "chromium";

pub(super) const SUITE: Suite = Suite {
    name: "node",
    about: "locks in JavaScript: the npm package beside those of Node, Deno and Chromium",
    plan,
    targets,
};

/// A case of `js/bench/cases.js` in one size.
struct Case {
    name: &'static str,
    program: &'static str,
    size: usize,
    unit: Unit,
    /// The peers that take seconds, not minutes.
    peers: &'static [&'static str],
}

const fn case(name: &'static str, program: &'static str, size: usize) -> Case {
    Case { name, program, size, unit: Nanoseconds, peers: &[NODE, DENO] }
}

const CASES: &[Case] = &[
    case("sequential", "sequential", 100_000),
    case("distinct-10k", "distinct", 10_000),
    case("queued-1k", "queued", 1_000),
    case("queued-20k", "queued", 20_000),
    Case { peers: &[DENO], ..case("queued-100k", "queued", 100_000) },
    case("among-0", "crowded", 0),
    case("among-10k", "crowded", 10_000),
    Case { peers: &[DENO], ..case("among-50k", "crowded", 50_000) },
    case("abort-half-20k", "aborted", 20_000),
    case("query-20k", "query", 10_000),
    case("handoff", "pingpong", 10_000),
    Case { unit: Bytes, ..case("memory-held", "bytes", 20_000) },
];

/// The size that a browser finishes in reasonable time.
const IN_A_PAGE: usize = 3_000;

/// Enough locks to exceed the noise of a process.
const MEASURABLE: usize = 2_000;

/// Each round is a process of its own, which warms up by itself.
const ROUNDS_MAX: usize = 5;

fn plan(options: &Options) -> Plan {
    let mut notes = vec![
        "every round is a process of its own; navlocks and node run in the newest Node".to_string(),
    ];
    let mut contests = Vec::new();
    match runtime::npm_package() {
        Ok(()) => {
            contests.extend(CASES.iter().map(|case| contest(case, options)));
            notes.push(runtime::versions());
        }
        Err(problem) => notes.push(format!("left out: {OURS}: {problem}")),
    }
    let pages = runtime::npm_package().and_then(|()| runtime::in_chromium());
    match pages {
        Ok([ours, theirs]) => {
            let size = options.scaled(IN_A_PAGE);
            let contest = Contest::new(&["page-sequential"], Nanoseconds).rounds_max(ROUNDS_MAX);
            contests.push(
                contest
                    .side(OURS, move || Box::new(move || vec![ours.measure(&[&size.to_string()])]))
                    .side(CHROMIUM, move || {
                        Box::new(move || vec![theirs.measure(&[&size.to_string()])])
                    }),
            );
        }
        Err(problem) => notes.push(format!("left out: {CHROMIUM}: {problem}")),
    }
    Plan { notes, contests }
}

fn contest(case: &'static Case, options: &Options) -> Contest {
    let size = match case.unit {
        _ if case.size == 0 => 0,
        // The memory of a few locks is lost in that of the process.
        Bytes => options.scaled(case.size).max(MEASURABLE),
        _ => options.scaled(case.size),
    };
    let contest = Contest::new(&[case.name], case.unit).rounds_max(ROUNDS_MAX);
    let sides = [OURS].iter().chain(case.peers);
    sides.fold(contest, |contest, &side| {
        contest.side(side, move || {
            let runtime = match side {
                OURS => Runtime::node("navlocks", case.unit),
                DENO => Runtime::deno(case.unit),
                _ => Runtime::node("native", case.unit),
            };
            Box::new(move || vec![runtime.measure(&[case.program, &size.to_string()])])
        })
    })
}

fn targets(rows: &[Row]) -> Vec<Target> {
    let row = |name| rows.iter().find(|row: &&Row| row.case == name);
    let times = |name, peer, limit| {
        let row = row(name)?;
        let measured = 1.0 / row.ratio(row.peer(peer)?);
        Some(Target { text: format!("times {peer} on {name}"), measured, limit })
    };
    let growth = |large, small, limit| {
        let measured = row(large)?.ours().fastest() / row(small)?.ours().fastest();
        Some(Target { text: format!("{large} over {small}"), measured, limit })
    };
    let targets = [
        times("sequential", NODE, 1.0 / 2.0),
        times("handoff", NODE, 1.0 / 2.0),
        times("among-10k", NODE, 1.0 / 50.0),
        times("queued-20k", NODE, 1.0 / 50.0),
        times("query-20k", NODE, 1.0),
        growth("among-50k", "among-0", 1.5),
        growth("queued-100k", "queued-1k", 1.5),
        times("memory-held", NODE, 1.0 / 3.0),
        times("page-sequential", CHROMIUM, 1.0),
    ];
    targets.into_iter().flatten().collect()
}
