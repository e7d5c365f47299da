//! `docs/conformance.md` lists every required behaviour once, with the surfaces on which a test
//! proves it. `docs/proofs.md` lists these tests, whose names begin with the id of the behaviour.
//!
//! `UPDATE_SNAPSHOTS=1` writes the surfaces and the proofs; people write behaviours and states.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::{env, fs};

use crate::files::{self, File};
use crate::javascript;
use crate::source::functions;

const LIST: &str = "docs/conformance.md";
const PROOFS: &str = "docs/proofs.md";
const UPDATE: &str = "UPDATE_SNAPSHOTS=1 cargo test -p navlocks-tests --test project conformance";

/// The start of the state of a row that tests of other rows prove as well.
const PROVEN_AS: &str = "proven, as ";

/// The ids of the behaviours: prefix, fewest digits, first and last number.
const IDS: [(&str, usize, u32, u32); 24] = [
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
    ("L", 2, 1, 15),
    ("W", 2, 1, 5),
    ("E", 2, 1, 4),
    ("C", 2, 1, 12),
    ("H", 2, 1, 8),
    ("B", 2, 1, 8),
];

/// The surfaces, in the order of the list.
const SURFACES: [&str; 5] = ["engine", "Rust", "service", "Node", "browser"];

/// The surfaces on which the tests of a file run. The first path that fits counts.
const RUNS_ON: [(&str, &[&str]); 21] = [
    ("crates/navlocks-core/", &["engine"]),
    ("tests/engine/", &["engine"]),
    ("tests/conformance/body/", &["Rust", "service"]),
    ("tests/conformance/", &["Rust"]),
    ("tests/lineage/", &["Rust"]),
    ("tests/stress/", &["Rust"]),
    ("crates/navlocks/tests/remote/", &["service"]),
    ("crates/navlocks/", &["Rust"]),
    ("crates/", &["service"]),
    ("tests/faults/", &["service"]),
    // These need a real IndexedDB.
    ("js/test/conformance/lineage/databases.js", &["browser"]),
    ("js/test/conformance/", &["service", "Node", "browser"]),
    // A simulated page in Node is no browser.
    ("js/test/pages/browser.test.js", &[]),
    ("js/test/pages/origins", &["service", "browser"]),
    ("js/test/pages/", &["browser"]),
    ("js/test/service/claims", &["service", "Node"]),
    ("js/test/service/nesting", &["service", "Node"]),
    ("js/test/service/outages", &["service", "Node"]),
    ("js/test/service/restarts", &["service", "Node"]),
    ("js/test/service/service", &["service", "Node"]),
    ("js/test/", &["Node"]),
];

/// The only surfaces that have a property that some JavaScript tests need.
const NEEDED_ON: [(&str, &[&str]); 1] = [("resists", &["service", "Node"])];

fn ids() -> Vec<String> {
    let ranges = IDS.iter();
    ranges
        .flat_map(|&(prefix, digits, first, last)| {
            (first..=last).map(move |number| format!("{prefix}{number:0digits$}"))
        })
        .collect()
}

/// A test that runs.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Test {
    /// `path::function`, or `path::title`.
    pub(crate) place: String,
    /// The ids in its name.
    pub(crate) ids: Vec<String>,
    /// The properties that a JavaScript test needs of its surface, as in the source.
    pub(crate) needs: String,
}

impl Test {
    fn runs_on(&self, surface: &str) -> bool {
        let path = RUNS_ON.iter().find(|(path, _)| self.place.starts_with(path));
        let needs = NEEDED_ON.iter().find(|(need, _)| self.needs.contains(need));
        path.is_some_and(|(_, on)| on.contains(&surface))
            && needs.is_none_or(|(_, on)| on.contains(&surface))
    }
}

/// Returns the ids that the name of a function begins with: two for `f64_decision_4_shared_waits`.
fn ids_of(mut function: &str) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        let (prefix, rest) = match function.strip_prefix("decision_") {
            Some(rest) => ("decision ", rest),
            None => function.split_at_checked(1).unwrap_or_default(),
        };
        let (number, rest) = rest.split_once('_').unwrap_or_default();
        let numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        if !numbered
            || ![
                "decision ",
                "s",
                "m",
                "g",
                "f",
                "p",
                "q",
                "t",
                "x",
                "d",
                "l",
                "w",
                "h",
                "b",
                "k",
                "c",
                "e",
            ]
            .contains(&prefix)
        {
            return ids;
        }
        let prefix = if prefix.len() == 1 { prefix.to_uppercase() } else { prefix.to_owned() };
        ids.push(format!("{prefix}{number}"));
        function = rest;
    }
}

/// Returns all tests that run among these Rust files.
fn rust_tests(sources: &[File]) -> Vec<Test> {
    let mut found = Vec::new();
    for file in sources {
        for function in functions(&file.text) {
            let attributes = || function.above.iter().map(|line| line.trim());
            let is_test = attributes().any(|line| line == "#[test]" || line.contains("::test"));
            let is_ignored = attributes().any(|line| line.starts_with("#[ignore"));
            if is_test && !is_ignored {
                let place = format!("{}::{}", file.path, function.name);
                found.push(Test { place, ids: ids_of(function.name), needs: String::new() });
            }
        }
    }
    found
}

type Proofs<'a> = BTreeMap<String, Vec<&'a Test>>;

/// Returns the tests of each id: those with the id in their names, and those of other ids that the
/// state of its row names, as in `proven, as F28, F29`.
fn proofs<'a>(list: &str, tests: &'a [Test]) -> Proofs<'a> {
    let mut proofs = Proofs::new();
    for test in tests {
        for id in &test.ids {
            proofs.entry(id.clone()).or_default().push(test);
        }
    }
    for Row { id, state, .. } in rows(list) {
        let others = state.strip_prefix(PROVEN_AS).into_iter().flat_map(|ids| ids.split(", "));
        let more: Vec<&Test> = others.flat_map(|id| proofs.get(id)).flatten().copied().collect();
        if !more.is_empty() {
            proofs.entry(id.to_owned()).or_default().extend(more);
        }
    }
    proofs
}

/// Returns the surfaces on which at least one of these tests runs.
fn surfaces(tests: Option<&Vec<&Test>>) -> String {
    let tests = tests.map_or(&[][..], Vec::as_slice);
    let runs = |surface: &&str| tests.iter().any(|test| test.runs_on(surface));
    let proven: Vec<&str> = SURFACES.into_iter().filter(runs).collect();
    if proven.is_empty() { "–".to_owned() } else { proven.join(", ") }
}

/// A line of the list: `| id | behaviour | surfaces | state |`.
struct Row<'a> {
    line: usize,
    id: &'a str,
    behaviour: &'a str,
    surfaces: &'a str,
    state: &'a str,
}

fn rows(list: &str) -> Vec<Row<'_>> {
    let lines = list.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
            let cells: Vec<&str> = cells.split(" | ").map(str::trim).collect();
            let &[id, behaviour, surfaces, state] = cells.as_slice() else { return None };
            (id != "id").then_some(Row { line: index + 1, id, behaviour, surfaces, state })
        })
        .collect()
}

/// Returns the list with the surfaces that the tests prove.
fn updated(list: &str, proofs: &Proofs<'_>) -> String {
    let mut lines: Vec<String> = list.lines().map(String::from).collect();
    for Row { line, id, behaviour, state, .. } in rows(list) {
        let surfaces = surfaces(proofs.get(id));
        lines[line - 1] = format!("| {id} | {behaviour} | {surfaces} | {state} |");
    }
    lines.join("\n") + "\n"
}

/// Returns the page of proofs.
fn page(ids: &[String], proofs: &Proofs<'_>) -> String {
    let mut page = format!(
        "# Proofs\n\nThe tests of each behaviour of [conformance.md](conformance.md), by its id. \
         A tool writes this page:\n`{UPDATE}`\n"
    );
    for id in ids {
        let Some(tests) = proofs.get(id.as_str()) else { continue };
        let _ = write!(page, "\n## {id}\n\n");
        for test in tests {
            let _ = writeln!(page, "- `{}`", test.place);
        }
    }
    page
}

/// Returns the faults of the list.
fn violations(list: &str, ids: &[String], proofs: &Proofs<'_>) -> Vec<String> {
    let mut violations = Vec::new();
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    for Row { line, id, surfaces, state, .. } in rows(list) {
        let place = format!("{LIST}:{line}: {id}");
        if !ids.iter().any(|known| known == id) {
            violations.push(format!("{place} is no known id"));
        }
        if let Some(first) = by_id.insert(id, line) {
            violations.push(format!("{place} stands already in line {first}"));
        }
        let found = self::surfaces(proofs.get(id));
        if surfaces != found {
            violations.push(format!("{place} is proven on {found:?}, not on {surfaces:?}"));
        }
        let reason = ["not applicable: ", "open: "].iter().find_map(|no| state.strip_prefix(no));
        match reason {
            None if state != "proven" && !state.starts_with(PROVEN_AS) => {
                violations.push(format!("{place} is neither proven nor open nor not applicable"));
            }
            None if found == "–" => violations.push(format!("{place} has no test")),
            Some("") => violations.push(format!("{place} has no reason")),
            _ => {}
        }
    }
    let missing = ids.iter().filter(|id| !by_id.contains_key(id.as_str()));
    violations.extend(missing.map(|id| format!("{LIST}: {id} is missing")));
    let unknown = proofs.keys().filter(|id| !by_id.contains_key(id.as_str()));
    violations.extend(unknown.map(|id| format!("{LIST}: a test is named by {id}")));
    violations
}

#[test]
fn conformance_list_and_proofs_are_complete_and_up_to_date() {
    let mut sources = files::compiled();
    // The snippets of bad lists in this folder are no tests.
    sources.retain(|file| !file.path.starts_with("tests/project/"));
    let mut tests = rust_tests(&sources);
    tests.extend(javascript::tests(&files::below("js/test")));
    tests.sort();
    let mut list = files::read(LIST).unwrap().text;
    let (ids, proofs) = (ids(), proofs(&list, &tests));
    let page = page(&ids, &proofs);
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        list = updated(&list, &proofs);
        fs::write(files::root().join(LIST), &list).unwrap();
        fs::write(files::root().join(PROOFS), &page).unwrap();
    }
    let mut violations = violations(&list, &ids, &proofs);
    if files::read(PROOFS).is_none_or(|file| file.text != page) {
        violations.push(format!("{PROOFS} is out of date"));
    }
    assert!(violations.is_empty(), "\n{}\nrun: {UPDATE}\n", violations.join("\n"));
}

#[test]
fn ids_are_those_of_the_list() {
    let ids = ids();
    assert_eq!(ids.len(), 309);
    for id in ["S1", "F01", "F75", "F100", "X39", "decision 12"] {
        assert!(ids.iter().any(|known| known == id), "{id}");
    }
    for id in ["S01", "F1", "F76", "F101", "X11"] {
        assert!(!ids.iter().any(|known| known == id), "{id}");
    }
}

#[test]
fn ids_of_a_function_are_at_the_start_of_its_name() {
    assert_eq!(ids_of("f64_shared_waits"), ["F64"]);
    assert_eq!(ids_of("g2_decision_4_d06_abort"), ["G2", "decision 4", "D06"]);
    for name in ["grants_in_order", "f_64", "z64_x", "x_y", "decision_maker", "é1_x", "f64"] {
        assert_eq!(ids_of(name), [""; 0], "{name}");
    }
}

/// Each fault of a list, alone.
mod finds {
    use super::*;

    const GOOD: &str = "\
| id | behaviour | proven on | state |
|---|---|---|---|
| F01 | one | engine, Rust, service | proven |
| F02 | two | engine, Rust, service | proven, as F01 |
| F03 | three | – | open: later |
| F04 | four | – | not applicable: nothing to see |
";

    fn tests() -> Vec<Test> {
        let source =
            "#[test]\nfn f01_a() {}\n#[test]\nfn b() {}\n#[test]\n#[ignore]\nfn f02_c() {}\n";
        let files = ["tests/engine/a.rs", "tests/conformance/body/a.rs"];
        rust_tests(&files.map(|path| File::new(path, source)))
    }

    fn expect(from: &str, to: &str, expected: &[&str]) {
        assert!(GOOD.contains(from));
        let ids = ["F01", "F02", "F03", "F04"].map(String::from);
        assert_eq!(violations(&GOOD.replace(from, to), &ids, &proofs(GOOD, &tests())), expected);
    }

    #[test]
    fn good_list_has_no_violation() {
        expect("one", "one", &[]);
    }

    #[test]
    fn wrong_surface_is_found_and_updated() {
        let fault =
            "docs/conformance.md:3: F01 is proven on \"engine, Rust, service\", not on \"Node\"";
        expect("one | engine, Rust, service", "one | Node", &[fault]);
        let worn = GOOD.replace("engine, Rust, service", "Node");
        assert_eq!(updated(&worn, &proofs(GOOD, &tests())), GOOD);
    }

    #[test]
    fn proven_row_without_test_is_found() {
        expect("open: later", "proven", &["docs/conformance.md:5: F03 has no test"]);
    }

    #[test]
    fn unknown_state_is_found() {
        let fault = "docs/conformance.md:5: F03 is neither proven nor open nor not applicable";
        expect("open: later", "soon", &[fault]);
    }

    #[test]
    fn missing_repeated_and_unknown_ids_are_found() {
        let missing = "docs/conformance.md: F04 is missing";
        let wrong =
            "docs/conformance.md:6: F02 is proven on \"engine, Rust, service\", not on \"–\"";
        let repeated = "docs/conformance.md:6: F02 stands already in line 4";
        expect("| F04 |", "| F02 |", &[repeated, wrong, missing]);
        expect("| F04 |", "| F05 |", &["docs/conformance.md:6: F05 is no known id", missing]);
    }

    #[test]
    fn page_of_proofs_has_each_test_below_its_id() {
        let page = page(&["F01".to_owned(), "F03".to_owned()], &proofs(GOOD, &tests()));
        let end =
            "\n## F01\n\n- `tests/engine/a.rs::f01_a`\n- `tests/conformance/body/a.rs::f01_a`\n";
        assert!(page.ends_with(end), "{page}");
    }
}
