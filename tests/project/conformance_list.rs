//! `docs/conformance.md` tells the truth: every id stands there once, every proof it names is a
//! test that runs, every test named by an id is named there, and its counts are right. Tests are
//! Rust's functions and JavaScript's titles.
//!
//! `UPDATE_SNAPSHOTS=1` lets the test mend what needs no thought: it takes out tests that are gone,
//! puts in those named by an id, and counts again. What a row still waits for is for people to say.

use std::collections::BTreeMap;
use std::{env, fs};

use crate::files::{self, File};
use crate::javascript;
use crate::source::functions;

const LIST: &str = "docs/conformance.md";

/// The ids of the requirements: prefix, digits at least, first and last number.
const IDS: [(&str, usize, u32, u32); 18] = [
    ("S", 1, 1, 18),
    ("M", 1, 1, 5),
    ("G", 1, 1, 18),
    ("F", 2, 1, 13),
    ("F", 2, 20, 33),
    ("F", 2, 40, 52),
    ("F", 2, 60, 75),
    ("F", 2, 80, 100),
    ("F", 2, 110, 117),
    ("F", 2, 120, 128),
    ("F", 2, 130, 134),
    ("P", 2, 1, 18),
    ("Q", 2, 1, 22),
    ("T", 2, 1, 9),
    ("X", 2, 1, 10),
    ("X", 2, 20, 39),
    ("D", 2, 1, 26),
    ("decision ", 1, 1, 12),
];

/// What a row may wait for.
const OUTSTANDING: [&str; 4] = ["the async API", "the service", "the JavaScript surface", "etcd"];

/// The words of the counts at the top, in their order.
const STATES: [&str; 4] = ["proven", "proven in part", "open", "not applicable"];

fn ids() -> Vec<String> {
    let ranges = IDS.iter();
    ranges
        .flat_map(|&(prefix, digits, first, last)| {
            (first..=last).map(move |number| format!("{prefix}{number:0digits$}"))
        })
        .collect()
}

/// One row of the list.
struct Row<'a> {
    line: usize,
    id: &'a str,
    behaviour: &'a str,
    answer: &'a str,
}

impl<'a> Row<'a> {
    /// The tests it names, as `path::function` between backticks.
    fn proofs(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let quoted = self.answer.split('`').skip(1).step_by(2);
        quoted.filter(|text| text.contains("::"))
    }

    /// The part that is not a proof: `waits for …`, `not applicable: …` or nothing.
    fn remainder(&self) -> String {
        let plain: String = self.answer.split('`').step_by(2).collect();
        let plain = plain.replace("<br>", " ");
        plain.trim_matches([' ', ',', ';']).to_owned()
    }

    /// Its state as an index of [`STATES`], or what is wrong with its words.
    fn state(&self) -> Result<usize, String> {
        let proven = self.proofs().next().is_some();
        let remainder = self.remainder();
        if let Some(what) = remainder.strip_prefix("waits for ") {
            let unknown = what.split(" and ").find(|what| !OUTSTANDING.contains(what));
            return match unknown {
                Some(what) => Err(format!("waits for {what:?}, which is none of {OUTSTANDING:?}")),
                None => Ok(if proven { 1 } else { 2 }),
            };
        }
        match (proven, remainder.strip_prefix("not applicable: ")) {
            (false, Some(reason)) if !reason.is_empty() => Ok(3),
            (true, None) if remainder.is_empty() => Ok(0),
            _ => Err("names no test, nor what it waits for, nor why it does not apply".to_owned()),
        }
    }
}

/// The rows and the counts of a list: all lines of tables but the headings.
fn parse(list: &str) -> (Vec<Row<'_>>, BTreeMap<&str, &str>) {
    let mut rows = Vec::new();
    let mut counts = BTreeMap::new();
    for (index, line) in list.lines().enumerate() {
        let Some(cells) = line.strip_prefix("| ") else {
            continue;
        };
        let cells: Vec<&str> = cells.trim_end_matches(" |").split(" | ").collect();
        match cells[..] {
            ["id", ..] | ["state", ..] => {}
            [state, count] if STATES.contains(&state) => {
                counts.insert(state, count);
            }
            [id, .., answer] => {
                let behaviour = cells.get(1).copied().unwrap_or_default();
                rows.push(Row { line: index + 1, id, behaviour, answer });
            }
            _ => {}
        }
    }
    (rows, counts)
}

/// How many rows are in each of the [`STATES`].
fn count(rows: &[Row<'_>]) -> [usize; STATES.len()] {
    let mut found = [0; STATES.len()];
    for state in rows.iter().filter_map(|row| row.state().ok()) {
        found[state] += 1;
    }
    found
}

/// The list with the proofs and the counts that it should have.
fn updated(list: &str, tests: &[Test]) -> String {
    let mut lines: Vec<String> = list.lines().map(String::from).collect();
    for row in parse(list).0 {
        let mut proofs: Vec<&str> = row.proofs().collect();
        proofs.retain(|proof| tests.iter().any(|test| test.place == *proof));
        for test in tests.iter().filter(|test| test.ids.iter().any(|id| id == row.id)) {
            if !proofs.contains(&test.place.as_str()) {
                proofs.push(&test.place);
            }
        }
        let proofs: Vec<String> = proofs.iter().map(|proof| format!("`{proof}`")).collect();
        let mut parts = vec![proofs.join(", "), row.remainder()];
        parts.retain(|part| !part.is_empty());
        lines[row.line - 1] = format!("| {} | {} | {} |", row.id, row.behaviour, parts.join("; "));
    }
    let text = lines.join("\n") + "\n";
    let found = count(&parse(&text).0);
    for (state, found) in STATES.iter().zip(found) {
        let start = format!("| {state} | ");
        for line in lines.iter_mut().filter(|line| line.starts_with(&start)) {
            *line = format!("{start}{found} |");
        }
    }
    lines.join("\n") + "\n"
}

/// A test that runs.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Test {
    /// `path::function`, or `path::title`.
    pub(crate) place: String,
    /// The ids it is named by.
    pub(crate) ids: Vec<String>,
}

/// The id a test is named by: `f64_shared_waits` and `decision_4_releases_all` have one,
/// `grants_in_order` has none. A path before the function's name does not matter.
fn id_of(test: &str) -> Option<String> {
    let function = test.rsplit("::").next()?;
    let (prefix, rest) = match function.strip_prefix("decision_") {
        Some(rest) => ("decision ", rest),
        None => function.split_at_checked(1)?,
    };
    let (number, _) = rest.split_once('_')?;
    let numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let known = prefix == "decision " || "smgfpqtxd".contains(prefix);
    (numbered && known).then(|| {
        if prefix.len() == 1 {
            format!("{}{number}", prefix.to_ascii_uppercase())
        } else {
            format!("{prefix}{number}")
        }
    })
}

/// All tests among the sources that run.
fn tests(sources: &[File]) -> Vec<Test> {
    let mut found = Vec::new();
    for file in sources {
        for function in functions(&file.text) {
            let attributes = || function.above.iter().map(|line| line.trim());
            let is_test = attributes().any(|line| line == "#[test]" || line.contains("::test"));
            let is_ignored = attributes().any(|line| line.starts_with("#[ignore"));
            if is_test && !is_ignored {
                let place = format!("{}::{}", file.path, function.name);
                let ids = id_of(&place).into_iter().collect();
                found.push(Test { place, ids });
            }
        }
    }
    found
}

fn violations(list: &str, ids: &[String], tests: &[Test]) -> Vec<String> {
    let (rows, counts) = parse(list);
    let mut violations = Vec::new();
    let mut by_id: BTreeMap<&str, &Row<'_>> = BTreeMap::new();
    for row in &rows {
        let place = format!("{LIST}:{}: {}", row.line, row.id);
        if !ids.iter().any(|id| id == row.id) {
            violations.push(format!("{place} is no known id"));
        }
        if let Some(first) = by_id.insert(row.id, row) {
            violations.push(format!("{place} stands already in line {}", first.line));
        }
        if let Err(fault) = row.state() {
            violations.push(format!("{place} {fault}"));
        }
        for proof in row.proofs() {
            if !tests.iter().any(|test| test.place == proof) {
                violations.push(format!("{place} names {proof}, and no such test runs"));
            }
        }
    }
    for id in ids {
        if !by_id.contains_key(id.as_str()) {
            violations.push(format!("{LIST}: {id} is missing"));
        }
    }
    for Test { place, ids } in tests {
        for id in ids {
            let row = by_id.get(id.as_str());
            if !row.is_some_and(|row| row.proofs().any(|proof| proof == place)) {
                violations.push(format!("{LIST}: row {id} does not name {place}"));
            }
        }
    }
    for (state, found) in STATES.iter().zip(count(&rows)) {
        let said = counts.get(state).copied().unwrap_or("nothing");
        if said != found.to_string() {
            violations.push(format!("{LIST}: says {said} for {state:?}, should say {found}"));
        }
    }
    violations
}

#[test]
fn the_list_is_complete_and_true() {
    let mut sources = files::compiled();
    // The snippets of bad lists in this folder are no tests.
    sources.retain(|file| !file.path.starts_with("tests/project/"));
    let mut tests = tests(&sources);
    tests.extend(javascript::tests(&files::below("js/test")));
    tests.sort();
    let mut list = files::read(LIST).unwrap().text;
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        list = updated(&list, &tests);
        fs::write(files::root().join(LIST), &list).unwrap();
    }
    let violations = violations(&list, &ids(), &tests);
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn ids_are_the_ones_of_the_requirements() {
    let ids = ids();
    assert_eq!(ids.len(), 257);
    for id in ["S1", "F01", "F75", "F100", "X39", "decision 12"] {
        assert!(ids.iter().any(|known| known == id), "{id}");
    }
    for id in ["S01", "F1", "F76", "F101", "X11"] {
        assert!(!ids.iter().any(|known| known == id), "{id}");
    }
}

#[test]
fn a_function_is_named_by_an_id_or_not() {
    assert_eq!(id_of("f64_shared_waits").as_deref(), Some("F64"));
    assert_eq!(id_of("g2_abort").as_deref(), Some("G2"));
    assert_eq!(id_of("decision_4_releases").as_deref(), Some("decision 4"));
    for name in ["grants_in_order", "f_64", "z64_x", "x_y", "decision_maker", "é1_x"] {
        assert_eq!(id_of(name), None, "{name}");
    }
}

/// Each fault of a list, alone.
mod finds {
    use super::*;

    const GOOD: &str = "\
| state | rows |
|---|---|
| proven | 1 |
| proven in part | 1 |
| open | 1 |
| not applicable | 1 |

| id | behaviour | proof |
|---|---|---|
| F01 | one | `t.rs::f01_a`, `t.rs::plain` |
| F02 | two | `t.rs::plain`; waits for etcd |
| F03 | three | waits for the service and the async API |
| F04 | four | not applicable: nothing to see |
";

    fn check(list: &str) -> Vec<String> {
        let ids: Vec<String> = ["F01", "F02", "F03", "F04"].map(String::from).into();
        let source = "#[test]\nfn f01_a() {}\n#[test]\nfn plain() {}\n#[test]\n#[ignore]\nfn f02_b() {}\nfn f03_c() {}\n";
        violations(list, &ids, &tests(&[File::new("t.rs", source)]))
    }

    fn expect(from: &str, to: &str, expected: &[&str]) {
        assert!(GOOD.contains(from));
        assert_eq!(check(&GOOD.replace(from, to)), expected);
    }

    #[test]
    fn nothing_in_a_good_list() {
        assert_eq!(check(GOOD), [""; 0]);
    }

    #[test]
    fn a_test_that_does_not_exist() {
        let fault = "docs/conformance.md:11: F02 names t.rs::gone, and no such test runs";
        expect("`t.rs::plain`; waits", "`t.rs::gone`; waits", &[fault]);
    }

    #[test]
    fn a_function_that_is_no_test_and_a_test_that_is_ignored() {
        let fault = "docs/conformance.md:11: F02 names t.rs::f03_c, and no such test runs";
        expect("`t.rs::plain`; waits", "`t.rs::f03_c`; waits", &[fault]);
        let fault = "docs/conformance.md:11: F02 names t.rs::f02_b, and no such test runs";
        expect("`t.rs::plain`; waits", "`t.rs::f02_b`; waits", &[fault]);
    }

    #[test]
    fn a_test_named_by_an_id_that_its_row_does_not_name() {
        let fault = "docs/conformance.md: row F01 does not name t.rs::f01_a";
        expect("`t.rs::f01_a`, ", "", &[fault]);
    }

    #[test]
    fn an_id_that_is_missing_twice_or_unknown() {
        expect(
            "| F04 |",
            "| F03 |",
            &[
                "docs/conformance.md:13: F03 stands already in line 12",
                "docs/conformance.md: F04 is missing",
            ],
        );
        expect(
            "| F04 |",
            "| F05 |",
            &["docs/conformance.md:13: F05 is no known id", "docs/conformance.md: F04 is missing"],
        );
    }

    #[test]
    fn a_wrong_count() {
        let fault = "docs/conformance.md: says 2 for \"open\", should say 1";
        expect("| open | 1 |", "| open | 2 |", &[fault]);
        let fault = "docs/conformance.md: says nothing for \"not applicable\", should say 1";
        expect("| not applicable | 1 |", "", &[fault]);
    }

    #[test]
    fn what_an_update_mends() {
        let worn = GOOD
            .replace("`t.rs::f01_a`, ", "`t.rs::gone`, ")
            .replace("| proven | 1 |", "| proven | 9 |")
            .replace("`t.rs::plain`; waits", "`t.rs::gone`; waits");
        let tests = ["t.rs::f01_a", "t.rs::plain", "t.rs::f03_c"]
            .map(|place| Test { place: place.to_owned(), ids: id_of(place).into_iter().collect() });
        let mended = GOOD
            .replace("`t.rs::f01_a`, `t.rs::plain`", "`t.rs::plain`, `t.rs::f01_a`")
            .replace("`t.rs::plain`; waits", "waits")
            .replace("three | waits", "three | `t.rs::f03_c`; waits");
        assert_eq!(updated(&worn, &tests), mended);
    }

    #[test]
    fn an_answer_that_says_nothing() {
        let list = GOOD.replace("not applicable: nothing to see", "later");
        assert_eq!(
            check(&list)[0],
            "docs/conformance.md:13: F04 names no test, nor what it waits for, nor why it does not apply"
        );
        let list = GOOD.replace("waits for etcd", "waits for rain");
        assert!(check(&list)[0].contains("waits for \"rain\", which is none of"));
    }
}
