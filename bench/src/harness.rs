//! Interleaved rounds of the same work on several sides.

use std::any::Any;
use std::io::{IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::stats;

/// The options of a run.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// A thousandth of every size and two rounds: shows that everything runs, not how fast.
    pub(crate) quick: bool,
    /// Only the cases whose name starts with this.
    pub(crate) filter: Option<String>,
    /// Measures our side without the peers, for a profiler.
    pub(crate) alone: bool,
    /// Rounds that count; one more before them warms up.
    pub(crate) rounds: usize,
    /// The size of the suite `scale`.
    pub(crate) scale: Scale,
}

/// The trial of the suite `scale`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) sessions: usize,
    /// Processors for nodes, etcd and clients together; all of them without a number.
    pub(crate) cores: Option<f64>,
    /// The leases of sessions and of nodes.
    pub(crate) lease: Duration,
    pub(crate) node_lease: Duration,
}

impl Default for Scale {
    fn default() -> Self {
        let (lease, node_lease) = (Duration::from_secs(10), Duration::from_secs(3));
        Self { sessions: 20_000, cores: None, lease, node_lease }
    }
}

impl Options {
    /// Returns a size or a number of operations, scaled for this run.
    pub(crate) fn scaled(&self, size: usize) -> usize {
        if self.quick { (size / 1000).max(10) } else { size }
    }
}

/// The unit of a case; always a cost, so less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Nanoseconds per operation.
    Nanoseconds,
    /// Nanoseconds per operation, shown as operations per second.
    Rate,
    /// Bytes per entry.
    Bytes,
    /// How many there are, possibly none.
    Count,
}

/// One round of one side: the cost of each case of the contest, in their order.
pub(crate) type Round = Box<dyn FnMut() -> Vec<f64>>;

struct Side {
    peer: &'static str,
    setup: Box<dyn FnOnce() -> Round>,
}

/// The same work on several sides, measured in turn. One round may answer several cases.
pub(crate) struct Contest {
    cases: Vec<String>,
    unit: Unit,
    /// That of the last case, where it is another one.
    last_unit: Option<Unit>,
    rounds_max: usize,
    sides: Vec<Side>,
}

impl Contest {
    pub(crate) fn new(cases: &[&str], unit: Unit) -> Self {
        let cases = cases.iter().map(ToString::to_string).collect();
        Self { cases, unit, last_unit: None, rounds_max: usize::MAX, sides: Vec::new() }
    }

    /// Prints the last case in this unit.
    pub(crate) fn last_in(mut self, unit: Unit) -> Self {
        self.last_unit = Some(unit);
        self
    }

    /// Limits the rounds, where each takes long.
    pub(crate) fn rounds_max(mut self, rounds: usize) -> Self {
        self.rounds_max = rounds;
        self
    }

    /// Adds a side; the first one is ours. The setup runs once, right before the rounds, untimed.
    pub(crate) fn side(
        mut self,
        peer: &'static str,
        setup: impl FnOnce() -> Round + 'static,
    ) -> Self {
        self.sides.push(Side { peer, setup: Box::new(setup) });
        self
    }

    /// Returns the rounds that count, and those before them to warm up.
    fn rounds(&self, options: &Options) -> (usize, usize) {
        match self.unit {
            Unit::Nanoseconds | Unit::Rate => (options.rounds.min(self.rounds_max), 1),
            // Bytes are the same in every round.
            Unit::Bytes | Unit::Count => (1, 0),
        }
    }

    /// Returns how many rounds of single sides it takes in all.
    fn steps(&self, options: &Options) -> usize {
        let (rounds, warm_up) = self.rounds(options);
        (rounds + warm_up) * if options.alone { 1 } else { self.sides.len() }
    }

    fn run(mut self, options: &Options, progress: &mut Progress) -> Vec<Row> {
        let (rounds, warm_up) = self.rounds(options);
        if options.alone {
            self.sides.truncate(1);
        }
        let peers: Vec<&str> = self.sides.iter().map(|side| side.peer).collect();
        let mut sides: Vec<Round> = self.sides.into_iter().map(|side| (side.setup)()).collect();
        let mut rows: Vec<Row> =
            (self.cases.iter()).map(|case| Row::new(case, self.unit, &peers)).collect();
        if let (Some(row), Some(unit)) = (rows.last_mut(), self.last_unit) {
            row.unit = unit;
        }
        for round in 0..warm_up + rounds {
            for (position, run) in sides.iter_mut().enumerate() {
                let all = warm_up + rounds;
                let (case, peer) = (&self.cases[0], peers[position]);
                progress.show(&format!("{case}: round {} of {all}, {peer}", round + 1));
                let costs = run();
                progress.done += 1;
                if round >= warm_up {
                    for (row, cost) in rows.iter_mut().zip(costs) {
                        row.cells[position].rounds.push(cost);
                    }
                }
            }
        }
        rows
    }
}

/// Runs the contests that match the filter, one after the other. Returns the measured rows, and a
/// sentence for each contest that failed: the others are measured all the same.
pub(crate) fn run(contests: Vec<Contest>, options: &Options) -> (Vec<Row>, Vec<String>) {
    let wanted = |case: &String| {
        options.filter.as_ref().is_none_or(|start| case.starts_with(start.as_str()))
    };
    let contests: Vec<Contest> =
        contests.into_iter().filter(|contest| contest.cases.iter().any(wanted)).collect();
    let steps = contests.iter().map(|contest| contest.steps(options)).sum();
    let mut progress = Progress { began: Instant::now(), done: 0, steps };
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for contest in contests {
        progress.announce(&contest.cases[0]);
        let (cases, done) = (contest.cases.join(", "), progress.done + contest.steps(options));
        match catch_unwind(AssertUnwindSafe(|| contest.run(options, &mut progress))) {
            Ok(measured) => rows.extend(measured.into_iter().filter(|row| wanted(&row.case))),
            Err(panic) => failures.push(format!("failed: {cases}: {}", text_of(&*panic))),
        }
        progress.done = done;
    }
    progress.clear();
    (rows, failures)
}

/// Returns the text of a panic.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or("it panicked")
}

/// The progress of a suite. A step is one round of one side.
struct Progress {
    began: Instant,
    done: usize,
    steps: usize,
}

impl Progress {
    /// Returns the remaining time, at the pace so far.
    fn left(&self) -> String {
        let left = (self.steps - self.done) as f64;
        match self.done {
            0 => "its time is known after the first rounds".to_string(),
            done => {
                let seconds = self.began.elapsed().as_secs_f64() / done as f64 * left;
                format!("about {seconds:.0} s left")
            }
        }
    }

    /// Shows the present case on a terminal, over the line before.
    fn show(&self, text: &str) {
        let (done, steps) = (self.done, self.steps);
        self.write(&format!("\r\x1b[K{text}; {done} of {steps} steps, {}", self.left()));
    }

    /// Prints the case that begins and the remaining time, where there is no terminal.
    fn announce(&self, case: &str) {
        if !std::io::stderr().is_terminal() {
            let (done, steps) = (self.done, self.steps);
            eprintln!("bench: {case} begins after {done} of {steps} steps, {}", self.left());
        }
    }

    fn clear(&self) {
        self.write("\r\x1b[K");
    }

    fn write(&self, text: &str) {
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() {
            // A progress line that cannot be written is not an error.
            let _ = write!(stderr, "{text}");
            let _ = stderr.flush();
        }
    }
}

/// The measured rounds of one case, a cell for each side.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) unit: Unit,
    pub(crate) cells: Vec<Cell>,
}

/// The measured rounds of one side.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) peer: &'static str,
    pub(crate) rounds: Vec<f64>,
}

impl Row {
    fn new(case: &str, unit: Unit, peers: &[&'static str]) -> Self {
        let cells = (peers.iter()).map(|peer| Cell { peer, rounds: Vec::new() }).collect();
        Self { case: case.to_string(), unit, cells }
    }

    pub(crate) fn ours(&self) -> &Cell {
        &self.cells[0]
    }

    pub(crate) fn peer(&self, peer: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.peer == peer)
    }

    /// Returns their cost over ours: above 1, we are faster or smaller.
    ///
    /// The median of the rounds' own ratios, since a slow phase of the machine hits both sides of a
    /// round. A count may be zero, so one is added on both sides.
    pub(crate) fn ratio(&self, theirs: &Cell) -> f64 {
        let more = if self.unit == Unit::Count { 1.0 } else { 0.0 };
        let ratios: Vec<f64> = (theirs.rounds.iter())
            .zip(&self.ours().rounds)
            .map(|(theirs, ours)| (theirs + more) / (ours + more))
            .collect();
        stats::median(&ratios)
    }
}

impl Cell {
    pub(crate) fn median(&self) -> f64 {
        stats::median(&self.rounds)
    }

    pub(crate) fn fastest(&self) -> f64 {
        stats::min(&self.rounds)
    }
}

/// Returns the nanoseconds per operation of some work.
pub(crate) fn time_per_op(operations: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / operations as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        let scale = Scale::default();
        Options { quick: false, filter: None, alone: false, rounds: 3, scale }
    }

    /// Returns a side that costs 100, 1, 2, 3 times `unit` in its rounds.
    fn fake(unit: f64) -> Round {
        let mut costs = [100.0, 1.0, 2.0, 3.0].into_iter();
        Box::new(move || vec![costs.next().unwrap_or(0.0) * unit])
    }

    #[test]
    fn warm_up_is_dropped_and_ratio_is_theirs_over_ours() {
        let contest = Contest::new(&["case"], Unit::Nanoseconds)
            .side("ours", || fake(1.0))
            .side("theirs", || fake(4.0));
        let (rows, _) = run(vec![contest], &options());
        assert_eq!(rows[0].ours().rounds, [1.0, 2.0, 3.0]);
        assert_eq!(rows[0].ratio(&rows[0].cells[1]), 4.0);
    }

    #[test]
    fn ratio_of_counts_is_finite_when_nothing_is_counted() {
        let contest = Contest::new(&["case"], Unit::Count)
            .side("ours", || fake(0.0))
            .side("theirs", || fake(1.0));
        let (rows, _) = run(vec![contest], &options());
        assert_eq!(rows[0].ratio(&rows[0].cells[1]), 101.0);
    }

    #[test]
    fn the_filter_leaves_out_contests_before_their_setup() {
        let contest = Contest::new(&["other"], Unit::Nanoseconds)
            .side("ours", || unreachable!("it was filtered out"));
        let filter = Some("case".to_string());
        let (rows, _) = run(vec![contest], &Options { filter, ..options() });
        assert!(rows.is_empty());
    }

    #[test]
    fn contest_that_fails_leaves_the_others_measured() {
        let named = |case: &str| Contest::new(&[case], Unit::Nanoseconds);
        let good = |case| named(case).side("ours", || fake(1.0));
        let bad = named("bad").side("ours", || panic!("too few {}", "files"));
        let (rows, failures) = run(vec![good("first"), bad, good("last")], &options());
        let cases: Vec<&str> = rows.iter().map(|row| row.case.as_str()).collect();
        assert_eq!(cases, ["first", "last"]);
        assert_eq!(failures, ["failed: bad: too few files"]);
    }
}
