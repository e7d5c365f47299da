//! A dashboard: the cost of an open page for its service and for the browser.

use super::node::runtime::{self, Runtime};
use super::{OURS, Plan, Suite, Target};
use crate::harness::Unit::{self, Bytes, Nanoseconds};
use crate::harness::{Contest, Options, Row};

/// The name of the side without a page.
const ALONE: &str = "alone";

/// The least speed of a service with a page, relative to one without.
const SPEED_MIN: f64 = 0.9;

/// The limits of a page: half of a core, and 200 MB.
const PAGE_NANOSECONDS_MAX: f64 = 0.5e9;
const PAGE_BYTES_MAX: f64 = 200e6;

pub(super) const SUITE: Suite = Suite {
    name: "dashboard",
    about: "a dashboard that is open in Chromium: what it costs the service and the browser",
    plan,
    targets,
};

/// A case of `js/bench/dashboard.js`: its name there, and the number of locks.
const CYCLES: [(&str, &str, usize); 2] =
    [("cycle-among-10k", "cycle", 10_000), ("cycle-among-50k-queued", "queued", 50_000)];
const PAGES: [(&str, &str, Unit); 2] =
    [("page-second", "cpu", Nanoseconds), ("page-memory", "memory", Bytes)];

fn plan(options: &Options) -> Plan {
    let mut notes = vec![
        "navlocks: the service with a page that shows its names; alone: without page and recording"
            .to_string(),
    ];
    let sides = runtime::npm_package().and_then(|()| runtime::dashboards());
    let [with, alone] = match sides {
        Ok(sides) => sides.map(std::rc::Rc::new),
        Err(problem) => {
            notes.push(format!("left out: {OURS}: {problem}"));
            return Plan { notes, contests: Vec::new() };
        }
    };
    let (cycle_seconds, page_seconds) = if options.quick { ("1", "1") } else { ("10", "60") };
    let measure = |runtime: &std::rc::Rc<Runtime>, words: [String; 3]| {
        let runtime = runtime.clone();
        move || {
            let (runtime, words) = (runtime.clone(), words.clone());
            let round = move || vec![runtime.measure(&words.each_ref().map(String::as_str))];
            Box::new(round) as Box<dyn FnMut() -> Vec<f64>>
        }
    };
    let words = |case: &str, size: usize, seconds: &str| {
        [case.to_string(), options.scaled(size).max(100).to_string(), seconds.to_string()]
    };
    let mut contests = Vec::new();
    for (name, case, size) in CYCLES {
        let words = words(case, size, cycle_seconds);
        contests.push(
            Contest::new(&[name], Nanoseconds)
                .rounds_max(5)
                .side(OURS, measure(&with, words.clone()))
                .side(ALONE, measure(&alone, words)),
        );
    }
    for (name, case, unit) in PAGES {
        let words = words(case, 10_000, page_seconds);
        contests.push(Contest::new(&[name], unit).rounds_max(1).side(OURS, measure(&with, words)));
    }
    Plan { notes, contests }
}

fn targets(rows: &[Row]) -> Vec<Target> {
    let row = |name: &str| rows.iter().find(|row| row.case == name);
    let cycles = CYCLES.iter().filter_map(|&(name, _, _)| {
        let row = row(name)?;
        let measured = 1.0 / row.ratio(row.peer(ALONE)?);
        Some(Target { text: format!("times {ALONE} on {name}"), measured, limit: 1.0 / SPEED_MIN })
    });
    let pages = PAGES.iter().zip([PAGE_NANOSECONDS_MAX, PAGE_BYTES_MAX]);
    let pages = pages.filter_map(|(&(name, _, _), limit)| {
        let measured = row(name)?.ours().fastest();
        Some(Target { text: name.to_string(), measured, limit })
    });
    cycles.chain(pages).collect()
}
